"""Records: where they come from (files, invented people), how they are divided, what two pools share."""
