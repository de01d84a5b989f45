"""Pictures of models and configurations, with matplotlib."""
