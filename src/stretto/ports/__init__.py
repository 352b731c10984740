"""One Protocol for each plug point. Adapters fulfil them; nothing here touches the world."""
