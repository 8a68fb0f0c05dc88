"""The Spark data source `coprlake`: reading, writing, and its options."""
