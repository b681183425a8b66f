"""What agents send each other: links, tasks, messages, and the transcripts of peers."""
