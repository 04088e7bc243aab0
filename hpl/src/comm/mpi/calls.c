/* The MPI calls of the engine behind types that no MPI library changes: handles are 64 bits, the rest is C's own.
   Built by the mpicc of a machine (hpl-tune mpi-setup) as a shared library, which the program loads; calls.rs has the same
   table. MPI 3.0. */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t handle;

_Static_assert(sizeof(MPI_Comm) <= sizeof(handle) && sizeof(MPI_Request) <= sizeof(handle), "handles have 64 bits at most");

#define FROM(type, name)                                 \
    static type name(handle kept) {                      \
        type native;                                     \
        memcpy(&native, &kept, sizeof native);           \
        return native;                                   \
    }
#define INTO(type, name)                                 \
    static handle name(type native) {                    \
        handle kept = 0;                                 \
        memcpy(&kept, &native, sizeof native);           \
        return kept;                                     \
    }
FROM(MPI_Comm, comm_of)
INTO(MPI_Comm, of_comm)
FROM(MPI_Request, request_of)
INTO(MPI_Request, of_request)

static int initialized(int *flag) { return MPI_Initialized(flag); }

static int init(int *funneled) {
    int provided = MPI_THREAD_SINGLE, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    *funneled = provided >= MPI_THREAD_FUNNELED;
    return code;
}

static handle world(void) { return of_comm(MPI_COMM_WORLD); }

static int errors_return(handle comm) { return MPI_Comm_set_errhandler(comm_of(comm), MPI_ERRORS_RETURN); }

static int rank(handle comm, int *rank) { return MPI_Comm_rank(comm_of(comm), rank); }

static int size(handle comm, int *size) { return MPI_Comm_size(comm_of(comm), size); }

static int split(handle comm, int color, int key, handle *made) {
    MPI_Comm part = MPI_COMM_NULL;
    int code = MPI_Comm_split(comm_of(comm), color, key, &part);
    *made = of_comm(part);
    return code;
}

static int split_node(handle comm, handle *made) {
    MPI_Comm part = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(comm_of(comm), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    *made = of_comm(part);
    return code;
}

static int free_comm(handle comm) {
    MPI_Comm native = comm_of(comm);
    return MPI_Comm_free(&native);
}

static int allgather(const uint64_t *mine, int count, uint64_t *all, handle comm) {
    return MPI_Allgather(mine, count, MPI_UINT64_T, all, count, MPI_UINT64_T, comm_of(comm));
}

static int isend(const double *data, int count, int to, int tag, handle comm, handle *request) {
    MPI_Request native = MPI_REQUEST_NULL;
    int code = MPI_Isend(data, count, MPI_DOUBLE, to, tag, comm_of(comm), &native);
    *request = of_request(native);
    return code;
}

static int irecv(double *data, int count, int from, int tag, handle comm, handle *request) {
    MPI_Request native = MPI_REQUEST_NULL;
    int code = MPI_Irecv(data, count, MPI_DOUBLE, from, tag, comm_of(comm), &native);
    *request = of_request(native);
    return code;
}

static int ibarrier(handle comm, handle *request) {
    MPI_Request native = MPI_REQUEST_NULL;
    int code = MPI_Ibarrier(comm_of(comm), &native);
    *request = of_request(native);
    return code;
}

/* count: doubles received, when it is done; of sends and barriers without meaning */
static int test(handle *request, int *done, int *count) {
    MPI_Request native = request_of(*request);
    MPI_Status status;
    int code = MPI_Test(&native, done, &status);
    *request = of_request(native);
    if (code == MPI_SUCCESS && *done) MPI_Get_count(&status, MPI_DOUBLE, count);
    return code;
}

static int error_string(int code, char *text, int *length) { return MPI_Error_string(code, text, length); }

static int is_truncation(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class == MPI_ERR_TRUNCATE;
}

static int library(char *text, int *length) { return MPI_Get_library_version(text, length); }

static int abort_job(int code) { return MPI_Abort(MPI_COMM_WORLD, code); }

static int finalize(void) { return MPI_Finalize(); }

const struct {
    uint64_t version, text_room;
    int (*initialized)(int *);
    int (*init)(int *);
    handle (*world)(void);
    int (*errors_return)(handle);
    int (*rank)(handle, int *);
    int (*size)(handle, int *);
    int (*split)(handle, int, int, handle *);
    int (*split_node)(handle, handle *);
    int (*free_comm)(handle);
    int (*allgather)(const uint64_t *, int, uint64_t *, handle);
    int (*isend)(const double *, int, int, int, handle, handle *);
    int (*irecv)(double *, int, int, int, handle, handle *);
    int (*ibarrier)(handle, handle *);
    int (*test)(handle *, int *, int *);
    int (*error_string)(int, char *, int *);
    int (*is_truncation)(int);
    int (*library)(char *, int *);
    int (*abort_job)(int);
    int (*finalize)(void);
} hpl_mpi_calls = {
    1,
    MPI_MAX_LIBRARY_VERSION_STRING > MPI_MAX_ERROR_STRING ? MPI_MAX_LIBRARY_VERSION_STRING : MPI_MAX_ERROR_STRING,
    initialized, init, world, errors_return, rank, size, split, split_node, free_comm, allgather, isend, irecv, ibarrier, test,
    error_string, is_truncation, library, abort_job, finalize,
};
