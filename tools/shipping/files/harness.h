/* What the test programs of packages need around a package: memory, streams, graphs, and data in files. With
 * HARNESS_HOST all of it is on the processor, where nothing is captured. Whatever goes wrong ends the process. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the first GPU's primary context current on this thread. */
void harness_attach(void);
void *harness_allocate(size_t bytes);
void harness_free(void *memory);
void *harness_stream(void);
void harness_wait(void *stream);
/* Waits for the stream, and fills memory with a byte. */
void harness_fill(void *memory, unsigned char byte, size_t bytes, void *stream);
/* Reads an argument from `folder`/argumentN. */
void harness_read(void *memory, size_t bytes, const char *folder, int argument);
/* How many elements of a result are farther from `folder`/resultN than `folder`/toleranceN says; says how far. */
size_t harness_wrong(const void *memory, size_t bytes, char type, const char *folder, int result);

int harness_can_capture(void);
void harness_capture(void *stream);
/* Ends the capture, and returns what was captured, ready to be launched. */
void *harness_captured(void *stream);
void harness_replay(void *graph, void *stream);

#ifdef __cplusplus
}
#endif

#endif
