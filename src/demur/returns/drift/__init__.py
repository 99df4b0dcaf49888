"""Has a system, or what it is asked, changed since a log was kept, and does its threshold still hold?"""
