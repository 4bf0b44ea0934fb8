"""The web page as somebody sees it: how soon, how late, how smooth, how large."""
