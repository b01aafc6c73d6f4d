"""Turns journal rows and plans into what people look at: tables, pictures, texts. Pure but for drawing."""
