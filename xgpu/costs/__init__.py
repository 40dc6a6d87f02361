"""Costs, from indexing maps and the numbers of a `Device`: for the planner, the schedules and ``explain`` alike.

`footprint` counts the elements that are read through a map, `sectors` what a warp's access touches of memory,
`evaluations` how often kernels compute each operation, `traffic` the bytes that a kernel moves; `recomputation` is the
cost to compute a value again, and `time` says what takes how long on a device. Decisions compare these numbers; what
is their threshold is a function here or a field of the device.
"""
