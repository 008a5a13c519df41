/* near.h: what NearMPI offers in addition to the MPI standard. A program that uses it needs NearMPI's
 * libmpi_abi.so.1; a program that must also run on other libraries looks the names up at run time (dlsym,
 * ctypes).
 *
 * Every function returns 0 or an MPI error class, never runs an error handler, and may be called from any
 * thread between initialisation and finalisation. */
#ifndef NEAR_H
#define NEAR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number of paths by which this version sends a message's bytes to another rank. Later versions may have more. */
int near_traffic_paths(void);

/* Name of path 0 .. near_traffic_paths() - 1, as in `near top` and the documentation: "inline" (in the
 * queue's slot), "packet" (in a pooled packet), "direct" (load and store), "cma" (the kernel copies),
 * "pipelined" (two overlapping copies through packets), "network" (to another machine). NULL for any other number.
 * The string is never freed. */
const char* near_traffic_name(int path);

/* Messages and bytes of payload that this process has sent by `path` since it was initialised. Either pointer
 * may be NULL. MPI_ERR_ARG: there is no such path. MPI_ERR_OTHER: MPI is not initialised. */
int near_traffic(int path, uint64_t* messages, uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#endif /* NEAR_H */
