"""The interactive shell: its prompt, completion, help, and what it does with each line."""
