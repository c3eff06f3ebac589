"""What figures are there, what do they mean, and how are they read where they arise?"""
