"""The files of a package: templates, and what fills them."""
