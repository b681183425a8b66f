"""Terminal nodes: their panes, what is typed there and what they write."""
