"""What passes that find scans share; and gradients of scans: polynomials, the gradient as a scan, and the proof."""
