"""How is a plan said in the SQL of an engine?"""
