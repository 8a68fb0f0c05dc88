"""Where bytes come from: files, folders, standard input; decompressed, decoded, and split."""
