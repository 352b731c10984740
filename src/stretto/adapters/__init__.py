"""Everything that touches the world: models, tools, stores, engines."""
