"""The processes of a Spark session: Java, its jars, and the workers."""
