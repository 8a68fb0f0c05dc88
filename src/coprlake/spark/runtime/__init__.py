"""The processes behind a Spark session: Java, jars, workers, and their start."""
