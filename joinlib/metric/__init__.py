"""Which metrics are there, what do they mean, and how are they measured?"""
