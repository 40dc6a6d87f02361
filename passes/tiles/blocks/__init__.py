"""The threads of block programs: any operations on tiles, with what was decided about each as attributes."""
