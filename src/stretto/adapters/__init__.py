"""Everything that touches the world: models, tools, stores, workspaces, clocks."""
