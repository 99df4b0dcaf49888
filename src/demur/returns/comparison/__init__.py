"""Is one system better than another, where, and which of many is best?"""
