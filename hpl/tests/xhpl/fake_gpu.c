/* Driver, BLAS and compiler of a platform for tests: one library that does on the host what those of CUDA (or, with -DHIP, of ROCm)
 * do on a device.
 *
 * Operations are queued and executed late: when the host waits, or earlier at random; streams go on in random order, as far as no
 * event keeps them waiting. Memory is poisoned until it is written, and when it is freed. An operation that touches memory which is not
 * the device's is an error (700), as on a device. Streams and events belong to the device that is current for the thread that makes them; one
 * device's event in another one's stream is an error (400). A block has one thread: what only more of them show, a device must. Pinned memory is read when a copy is executed, other memory when it is queued.
 *
 *   FAKE_GPU_SEED     seed of the order
 *   FAKE_GPU_DEVICES  number of devices (1)
 *   FAKE_GPU_BYTES    memory of each (1 GiB)
 *   FAKE_GPU_FAIL     NAME:K:STATUS, the K-th call of this function returns the status
 *   FAKE_GPU_LOG      file to which the end of the process appends what was not freed
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HIP
#define NAME(cuda, hip) hip
enum { NOT_TRANSPOSED = 111, UPPER = 121, LOWER = 122, NOT_UNIT = 131, UNIT = 132, LEFT = 141 };
#else
#define NAME(cuda, hip) cuda
enum { NOT_TRANSPOSED = 0, UPPER = 1, LOWER = 0, NOT_UNIT = 0, UNIT = 1, LEFT = 0 };
#endif

/* The kernels, as functions of the host: each thread in turn. Blocks whose threads wait for each other have one; those of
 * hpl_factor, which wait for other blocks, are threads of the host. */
static __thread uint64_t thread_x, thread_y, threads_x, threads_y, block, blocks;
#define KERNEL static void
#define KERNEL_OF(threads) static void
#define X thread_x
#define X_COUNT threads_x
#define Y thread_y
#define Y_COUNT threads_y
#define INLINE static inline
#define SHARED
#define ALIGNED
#define THREAD ((u64)0)
#define THREADS ((u64)1)
#define BLOCK block
#define BLOCKS blocks
#define SYNC_THREADS()
#define WAIT_A_MOMENT() sched_yield()
#define UNROLL
#define HELD (32 * 512)
#include "../../src/backend/device/gpu/kernels.c"

enum { OK = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NOT_FOUND = 500,
       INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t random_state = 1;
/* The device of this thread's calls, from 1 on; with CUDA there is none at first. */
static __thread intptr_t current = NAME(0, 1);
/* An error of an operation that was executed: every later call returns it, as after a fault of a device. */
static int fault;
static long contexts, memories, pinned_memories, pinned_ranges, streams, events, modules, handles, programs;

static uint64_t below(uint64_t end)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % end;
}

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

/* The status that FAKE_GPU_FAIL asks for in this call of `name`, else 0. */
static int asked_failure(const char *name)
{
    static long calls;
    const char *text = setting("FAKE_GPU_FAIL", "");
    size_t length = strlen(name);
    if (strncmp(text, name, length) || text[length] != ':') return 0;
    char *rest;
    long which = strtol(text + length + 1, &rest, 10);
    return ++calls == which ? atoi(rest + 1) : 0;
}

/* Starts a call: takes the lock, and returns where it is to fail. */
#define CALL(name)                                                                                                         \
    pthread_mutex_lock(&lock);                                                                                             \
    int status = asked_failure(name);                                                                                      \
    if (!status) status = fault;                                                                                           \
    if (status) return done(status)
static int done(int status)
{
    pthread_mutex_unlock(&lock);
    return status;
}

/* Memory of the device, and memory of the host that the device knows. */
struct range { char *start; size_t bytes; int pinned; struct range *next; };
static struct range *ranges;

static int inside(const void *start, size_t bytes, int pinned)
{
    for (struct range *r = ranges; r; r = r->next)
        if (r->pinned == pinned && (char *)start >= r->start && (char *)start + bytes <= r->start + r->bytes) return 1;
    return 0;
}

static void add_range(void *start, size_t bytes, int pinned)
{
    struct range *r = malloc(sizeof *r);
    *r = (struct range){start, bytes, pinned, ranges};
    ranges = r;
}

static int remove_range(void *start, int pinned)
{
    for (struct range **at = &ranges; *at; at = &(*at)->next)
        if ((*at)->start == start && (*at)->pinned == pinned) {
            struct range *r = *at;
            *at = r->next;
            free(r);
            return 1;
        }
    return 0;
}

static void poison(void *start, size_t bytes)
{
    const uint64_t nan = 0x7ff8deaddeaddead;
    for (size_t i = 0; i + 8 <= bytes; i += 8) memcpy((char *)start + i, &nan, 8);
}

/* Streams and events. */
struct event { int happened, references, has_time; struct timespec at; intptr_t device; };
struct operation {
    enum { WORK, RECORD, WAIT } kind;
    void (*work)(const uint64_t *);
    uint64_t arguments[17];
    struct event *event;
    /* A copy of host memory that was not pinned, freed after the work. */
    void *copy;
    struct operation *next;
};
struct stream { struct operation *first, *last; struct stream *next; intptr_t device; };
static struct stream *all_streams;

static void release(struct event *event)
{
    if (--event->references == 0) free(event);
}

/* Executes the next operation of a random stream; 0 where none can start. */
static int step(void)
{
    struct stream *ready[64];
    int count = 0;
    for (struct stream *s = all_streams; s && count < 64; s = s->next)
        if (s->first && (s->first->kind != WAIT || s->first->event->happened)) ready[count++] = s;
    if (!count) return 0;
    struct stream *s = ready[below(count)];
    struct operation *o = s->first;
    s->first = o->next;
    if (!s->first) s->last = NULL;
    if (o->kind == WORK && !fault) o->work(o->arguments);
    if (o->kind == RECORD) {
        o->event->happened = 1;
        clock_gettime(CLOCK_MONOTONIC, &o->event->at);
    }
    if (o->kind != WORK) release(o->event);
    free(o->copy);
    free(o);
    return 1;
}

static void execute_all(void)
{
    while (step()) {}
}

static struct operation *queue(struct stream *s, struct operation order)
{
    struct operation *o = malloc(sizeof *o);
    *o = order;
    o->next = NULL;
    if (s->last) s->last->next = o; else s->first = o;
    s->last = o;
    /* One of four at once. */
    if (below(4) == 0) step();
    return o;
}

/* Driver: device and context. */
int NAME(cuInit, hipInit)(unsigned flags)
{
    CALL(NAME("cuInit", "hipInit"));
    random_state = strtoull(setting("FAKE_GPU_SEED", "1"), NULL, 10) * 2 + 1;
    return done(flags ? INVALID_VALUE : OK);
}

int NAME(cuDriverGetVersion, hipDriverGetVersion)(int *version)
{
    *version = NAME(12090, 50223186);
    return OK;
}

int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
    CALL(NAME("cuDeviceGetCount", "hipGetDeviceCount"));
    *count = atoi(setting("FAKE_GPU_DEVICES", "1"));
    return done(*count ? OK : NAME(OK, NO_DEVICE));
}

int NAME(cuDeviceGet, hipDeviceGet)(int *device, int ordinal)
{
    CALL(NAME("cuDeviceGet", "hipDeviceGet"));
    *device = ordinal;
    return done(ordinal < atoi(setting("FAKE_GPU_DEVICES", "1")) ? OK : INVALID_DEVICE);
}

int NAME(cuDeviceGetName, hipDeviceGetName)(char *name, int length, int device)
{
    snprintf(name, length, "Fake device");
    return device < 0 ? INVALID_DEVICE : OK;
}

int NAME(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *address, int length, int device)
{
    CALL(NAME("cuDeviceGetPCIBusId", "hipDeviceGetPCIBusId"));
    snprintf(address, length, "FFFF:C%d:00.0", device);
    return done(device < 0 ? INVALID_DEVICE : OK);
}

static size_t total_bytes(void)
{
    return strtoull(setting("FAKE_GPU_BYTES", "1073741824"), NULL, 10);
}

static size_t used_bytes(void)
{
    size_t used = 0;
    for (struct range *r = ranges; r; r = r->next) used += r->pinned ? 0 : r->bytes;
    return used;
}

int NAME(cuDeviceTotalMem_v2, hipDeviceTotalMem)(size_t *bytes, int device)
{
    *bytes = total_bytes();
    return device < 0 ? INVALID_DEVICE : OK;
}

int NAME(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int device)
{
    *value = attribute == 75 ? 9 : attribute == 16 ? 132 : 0;
    return device < 0 ? INVALID_DEVICE : OK;
}

int NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t *free_bytes, size_t *total)
{
    *total = total_bytes();
    *free_bytes = *total - used_bytes();
    return OK;
}

#ifdef HIP
int hipSetDevice(int device)
{
    CALL("hipSetDevice");
    current = device + 1;
    return done(device < atoi(setting("FAKE_GPU_DEVICES", "1")) ? OK : INVALID_DEVICE);
}
int hipGetDevice(int *device)
{
    *device = (int)current - 1;
    return OK;
}
const char *hipGetErrorName(int error)
{
    return error == NO_MEMORY ? "hipErrorOutOfMemory" : "hipErrorOfTheFake";
}
const char *hipGetErrorString(int error)
{
    return error == NO_MEMORY ? "out of memory" : "an error of the fake";
}
#else
int cuDevicePrimaryCtxRetain(void **context, int device)
{
    CALL("cuDevicePrimaryCtxRetain");
    contexts++;
    *context = (void *)(intptr_t)(device + 1);
    return done(OK);
}
int cuDevicePrimaryCtxRelease_v2(int device)
{
    contexts--;
    return device < 0 ? INVALID_DEVICE : OK;
}
int cuCtxSetCurrent(void *context)
{
    CALL("cuCtxSetCurrent");
    current = (intptr_t)context;
    return done(context ? OK : INVALID_VALUE);
}
/* Contexts that were current before. */
static __thread intptr_t below_current[16];
static __thread int pushed;
int cuCtxPushCurrent_v2(void *context)
{
    CALL("cuCtxPushCurrent_v2");
    if (!context || pushed == 16) return done(INVALID_VALUE);
    below_current[pushed++] = current;
    current = (intptr_t)context;
    return done(OK);
}
int cuCtxPopCurrent_v2(void **context)
{
    CALL("cuCtxPopCurrent_v2");
    if (!pushed) return done(INVALID_VALUE);
    *context = (void *)current;
    current = below_current[--pushed];
    return done(OK);
}
int cuGetErrorName(int error, const char **name)
{
    *name = error == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_FAKE";
    return OK;
}
int cuGetErrorString(int error, const char **text)
{
    *text = error == NO_MEMORY ? "out of memory" : "an error of the fake";
    return OK;
}
#endif

/* Memory. */
int NAME(cuMemAlloc_v2, hipMalloc)(void **start, size_t bytes)
{
    CALL(NAME("cuMemAlloc_v2", "hipMalloc"));
    if (!bytes) return done(INVALID_VALUE);
    if (used_bytes() + bytes > total_bytes()) return done(NO_MEMORY);
    *start = malloc(bytes);
    poison(*start, bytes);
    add_range(*start, bytes, 0);
    memories++;
    return done(OK);
}

int NAME(cuMemFree_v2, hipFree)(void *start)
{
    pthread_mutex_lock(&lock);
    execute_all();
    struct range *r = ranges;
    while (r && (r->start != start || r->pinned)) r = r->next;
    if (!r) return done(INVALID_VALUE);
    poison(start, r->bytes);
    remove_range(start, 0);
    free(start);
    memories--;
    return done(OK);
}

int NAME(cuMemHostAlloc, hipHostMalloc)(void **start, size_t bytes, unsigned flags)
{
    CALL(NAME("cuMemHostAlloc", "hipHostMalloc"));
    if (!bytes || flags != 1) return done(INVALID_VALUE);
    if (posix_memalign(start, 4096, bytes)) return done(NO_MEMORY);
    add_range(*start, bytes, 1);
    pinned_memories++;
    return done(OK);
}

int NAME(cuMemFreeHost, hipHostFree)(void *start)
{
    pthread_mutex_lock(&lock);
    execute_all();
    if (!remove_range(start, 1)) return done(INVALID_VALUE);
    free(start);
    pinned_memories--;
    return done(OK);
}

int NAME(cuMemHostRegister_v2, hipHostRegister)(void *start, size_t bytes, unsigned flags)
{
    CALL(NAME("cuMemHostRegister_v2", "hipHostRegister"));
    if (flags != 1) return done(INVALID_VALUE);
    add_range(start, bytes, 1);
    pinned_ranges++;
    return done(OK);
}

int NAME(cuMemHostUnregister, hipHostUnregister)(void *start)
{
    pthread_mutex_lock(&lock);
    if (!remove_range(start, 1)) return done(INVALID_VALUE);
    pinned_ranges--;
    return done(OK);
}

/* Streams and events. */
int NAME(cuCtxGetStreamPriorityRange, hipDeviceGetStreamPriorityRange)(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return OK;
}

int NAME(cuStreamCreateWithPriority, hipStreamCreateWithPriority)(struct stream **stream, unsigned flags, int priority)
{
    CALL(NAME("cuStreamCreateWithPriority", "hipStreamCreateWithPriority"));
    if (flags != 1 || priority > 0 || priority < -5) return done(INVALID_VALUE);
    *stream = calloc(1, sizeof **stream);
    (*stream)->device = current;
    (*stream)->next = all_streams;
    all_streams = *stream;
    streams++;
    return done(OK);
}

int NAME(cuStreamDestroy_v2, hipStreamDestroy)(struct stream *stream)
{
    pthread_mutex_lock(&lock);
    execute_all();
    for (struct stream **at = &all_streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            free(stream);
            streams--;
            return done(OK);
        }
    return done(INVALID_VALUE);
}

int NAME(cuEventCreate, hipEventCreateWithFlags)(struct event **event, unsigned flags)
{
    CALL(NAME("cuEventCreate", "hipEventCreateWithFlags"));
    *event = malloc(sizeof **event);
    **event = (struct event){.references = 1, .has_time = flags == 0, .device = current};
    events++;
    return done(flags == 0 || flags == 2 ? OK : INVALID_VALUE);
}

int NAME(cuEventDestroy_v2, hipEventDestroy)(struct event *event)
{
    pthread_mutex_lock(&lock);
    release(event);
    events--;
    return done(OK);
}

int NAME(cuEventRecord, hipEventRecord)(struct event *event, struct stream *stream)
{
    CALL(NAME("cuEventRecord", "hipEventRecord"));
    if (event->device != stream->device) return done(INVALID_HANDLE);
    event->references++;
    queue(stream, (struct operation){.kind = RECORD, .event = event});
    return done(OK);
}

int NAME(cuStreamWaitEvent, hipStreamWaitEvent)(struct stream *stream, struct event *event, unsigned flags)
{
    CALL(NAME("cuStreamWaitEvent", "hipStreamWaitEvent"));
    if (flags) return done(INVALID_VALUE);
    event->references++;
    queue(stream, (struct operation){.kind = WAIT, .event = event});
    return done(OK);
}

int NAME(cuEventElapsedTime, hipEventElapsedTime)(float *milliseconds, struct event *from, struct event *to)
{
    CALL(NAME("cuEventElapsedTime", "hipEventElapsedTime"));
    if (!from->has_time || !to->has_time) return done(INVALID_VALUE);
    if (!from->happened || !to->happened) return done(NOT_READY);
    *milliseconds = 1e3f * (float)(to->at.tv_sec - from->at.tv_sec) + 1e-6f * (float)(to->at.tv_nsec - from->at.tv_nsec);
    return done(OK);
}

int NAME(cuEventQuery, hipEventQuery)(struct event *event)
{
    CALL(NAME("cuEventQuery", "hipEventQuery"));
    return done(event->happened ? OK : NOT_READY);
}

int NAME(cuEventSynchronize, hipEventSynchronize)(struct event *event)
{
    CALL(NAME("cuEventSynchronize", "hipEventSynchronize"));
    while (!event->happened && step()) {}
    return done(fault);
}

int NAME(cuCtxSynchronize, hipDeviceSynchronize)(void)
{
    CALL(NAME("cuCtxSynchronize", "hipDeviceSynchronize"));
    execute_all();
    return done(fault);
}

/* Copies: columns of `bytes` bytes. */
struct copy { char *to; size_t to_pitch; const char *from; size_t from_pitch, bytes, cols; int up; };

static void copy_work(const uint64_t *a)
{
    char *to = (char *)a[0];
    const char *from = (const char *)a[2];
    for (size_t j = 0; j < a[5]; j++) {
        char *on_device = a[6] ? to + j * a[1] : (char *)from + j * a[3];
        if (!inside(on_device, a[4], 0)) { fault = ILLEGAL_ADDRESS; return; }
        memcpy(to + j * a[1], from + j * a[3], a[4]);
    }
}

static int queue_copy(struct stream *stream, struct copy c)
{
    struct operation o = {.kind = WORK, .work = copy_work};
    if (c.cols > 1 && (c.to_pitch < c.bytes || c.from_pitch < c.bytes)) return INVALID_VALUE;
    if (c.up && !inside(c.from, (c.cols - 1) * c.from_pitch + c.bytes, 1)) {
        o.copy = malloc(c.bytes * c.cols);
        for (size_t j = 0; j < c.cols; j++) memcpy((char *)o.copy + j * c.bytes, c.from + j * c.from_pitch, c.bytes);
        c.from = o.copy;
        c.from_pitch = c.bytes;
    }
    uint64_t arguments[] = {(uint64_t)c.to, c.to_pitch, (uint64_t)c.from, c.from_pitch, c.bytes, c.cols, c.up};
    memcpy(o.arguments, arguments, sizeof arguments);
    queue(stream, o);
    return OK;
}

int NAME(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(void *to, const void *from, size_t bytes, struct stream *stream)
{
    CALL(NAME("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"));
    return done(queue_copy(stream, (struct copy){to, bytes, from, bytes, bytes, 1, 1}));
}

int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, const void *from, size_t bytes, struct stream *stream)
{
    CALL(NAME("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"));
    return done(queue_copy(stream, (struct copy){to, bytes, from, bytes, bytes, 1, 0}));
}

#ifdef HIP
int hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t bytes, size_t cols, int kind,
                     struct stream *stream)
{
    CALL("hipMemcpy2DAsync");
    if (kind != 1 && kind != 2) return done(INVALID_VALUE);
    return done(queue_copy(stream, (struct copy){to, to_pitch, from, from_pitch, bytes, cols, kind == 1}));
}
#else
/* As in cuda.h. */
struct side { size_t x, y; int kind; void *host; void *device; void *array; size_t pitch; };
struct memcpy_2d { struct side from, to; size_t bytes, cols; };
int cuMemcpy2DAsync_v2(const struct memcpy_2d *c, struct stream *stream)
{
    CALL("cuMemcpy2DAsync_v2");
    int up = c->from.kind == 1 && c->to.kind == 2, down = c->from.kind == 2 && c->to.kind == 1;
    if (!(up || down) || c->from.x || c->from.y || c->to.x || c->to.y) return done(INVALID_VALUE);
    void *from = up ? c->from.host : c->from.device, *to = up ? c->to.device : c->to.host;
    return done(queue_copy(stream, (struct copy){to, c->to.pitch, from, c->from.pitch, c->bytes, c->cols, up}));
}
#endif

/* Kernels. */
#define P(i) ((double *)a[i])
#define U(i) ((const u64 *)a[i])
static void run_copy(const u64 *a) { hpl_copy(P(0), a[1], P(2), a[3], a[4], a[5]); }
static void run_transpose(const u64 *a) { hpl_transpose(P(0), a[1], P(2), a[3], a[4], a[5]); }
static void run_gather(const u64 *a) { hpl_gather(U(0), a[1], P(2), a[3], P(4), a[5], a[6], a[7]); }
static void run_scatter(const u64 *a) { hpl_scatter(U(0), a[1], P(2), a[3], a[4], P(5), a[6], a[7]); }
static void run_generate(const u64 *a) { hpl_generate(U(0), U(1), P(2), a[3], a[4], a[5]); }
static void run_row_sums(const u64 *a) { hpl_row_sums(P(0), a[1], P(2), P(3), a[4], a[5]); }
static void run_check_rows(const u64 *a) { hpl_check_rows(U(0), U(1), U(2), P(3), a[4], P(5), P(6), a[7], a[8]); }
static void run_factor(const u64 *a) { hpl_factor(P(0), a[1], a[2], a[3], a[4], P(5), P(6), (u64 *)a[7], a[8]); }
static void run_interchange(const u64 *a) { hpl_interchange(P(0), a[1], a[2], P(3), a[4], a[5], a[6], a[7], a[8]); }
static void run_permute(const u64 *a) { hpl_permute(U(0), a[1], P(2), a[3], a[4]); }
static void run_check_cols(const u64 *a) { hpl_check_cols(U(0), U(1), U(2), a[3], P(4), P(5), a[6], a[7]); }

static const struct kernel { const char *name; void (*run)(const u64 *); int arguments, addresses[4]; } kernels[] = {
    {"hpl_copy", run_copy, 6, {0, 2, -1, -1}},
    {"hpl_transpose", run_transpose, 6, {0, 2, -1, -1}},
    {"hpl_gather", run_gather, 8, {0, 2, 4, -1}},
    {"hpl_scatter", run_scatter, 8, {0, 2, 5, -1}},
    {"hpl_generate", run_generate, 6, {0, 1, 2, -1}},
    {"hpl_row_sums", run_row_sums, 6, {0, 2, 3, -1}},
    {"hpl_check_rows", run_check_rows, 9, {0, 3, 5, 6}},
    {"hpl_check_cols", run_check_cols, 8, {0, 1, 4, 5}},
    {"hpl_factor", run_factor, 9, {0, 5, 6, 7}},
    {"hpl_interchange", run_interchange, 9, {0, 3, -1, -1}},
    {"hpl_permute", run_permute, 5, {0, 2, -1, -1}},
};

struct one_block { const uint64_t *arguments; uint64_t block; };

static void *run_block(void *given)
{
    const struct one_block *one = given;
    block = one->block;
    blocks = one->arguments[15];
    run_factor((const u64 *)one->arguments);
    return NULL;
}

/* The blocks of hpl_factor side by side. */
static void run_blocks(const uint64_t *a)
{
    pthread_t threads[256];
    struct one_block all[256];
    uint64_t count = a[15];
    for (uint64_t i = 0; i < count; i++) {
        all[i] = (struct one_block){a, i};
        pthread_create(&threads[i], NULL, run_block, &all[i]);
    }
    for (uint64_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* Arguments, then number of the kernel, the size of the grid, and its blocks along X. */
static void launch_work(const uint64_t *a)
{
    const struct kernel *k = &kernels[a[12]];
    for (int i = 0; i < 4 && k->addresses[i] >= 0; i++)
        if (!inside((void *)a[k->addresses[i]], 8, 0)) { fault = ILLEGAL_ADDRESS; return; }
    if (k->run == run_factor) {
        run_blocks(a);
        return;
    }
    if (k->run == run_interchange || k->run == run_permute) {
        blocks = a[15];
        for (block = 0; block < blocks; block++) k->run((const u64 *)a);
        return;
    }
    threads_x = a[13];
    threads_y = a[14];
    for (thread_y = 0; thread_y < threads_y; thread_y++)
        for (thread_x = 0; thread_x < threads_x; thread_x++) k->run((const u64 *)a);
}

static const char image[] = "code of the fake";

int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *code)
{
    CALL(NAME("cuModuleLoadData", "hipModuleLoadData"));
    if (memcmp(code, image, sizeof image)) return done(INVALID_IMAGE);
    modules++;
    *module = (void *)image;
    return done(OK);
}

int NAME(cuModuleUnload, hipModuleUnload)(void *module)
{
    pthread_mutex_lock(&lock);
    modules--;
    return done(module == image ? OK : INVALID_VALUE);
}

int NAME(cuModuleGetFunction, hipModuleGetFunction)(const struct kernel **kernel, void *module, const char *name)
{
    CALL(NAME("cuModuleGetFunction", "hipModuleGetFunction"));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (module == image && !strcmp(kernels[i].name, name)) {
            *kernel = &kernels[i];
            return done(OK);
        }
    return done(NOT_FOUND);
}

int NAME(cuLaunchKernel, hipModuleLaunchKernel)(const struct kernel *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                                unsigned by, unsigned bz, unsigned shared, struct stream *stream, void **arguments,
                                                void **extra)
{
    CALL(NAME("cuLaunchKernel", "hipModuleLaunchKernel"));
    if (!gx || !gy || gz != 1 || gy > 65535 || bx > 1024 || by != 1 || bz != 1 || shared || extra) return done(INVALID_VALUE);
    if (kernel->run == run_factor && (gx > 256 || bx > FACTOR_THREADS)) return done(INVALID_VALUE);
    struct operation o = {.kind = WORK, .work = launch_work};
    for (int i = 0; i < kernel->arguments; i++) memcpy(&o.arguments[i], arguments[i], 8);
    o.arguments[12] = kernel - kernels;
    o.arguments[13] = (uint64_t)gx * bx;
    o.arguments[14] = gy;
    o.arguments[15] = gx;
    queue(stream, o);
    return done(OK);
}

/* BLAS. */
struct blas { struct stream *stream; };

int NAME(cublasCreate_v2, rocblas_create_handle)(struct blas **handle)
{
    CALL(NAME("cublasCreate_v2", "rocblas_create_handle"));
    *handle = calloc(1, sizeof **handle);
    handles++;
    return done(OK);
}

int NAME(cublasDestroy_v2, rocblas_destroy_handle)(struct blas *handle)
{
    pthread_mutex_lock(&lock);
    free(handle);
    handles--;
    return done(OK);
}

int NAME(cublasSetStream_v2, rocblas_set_stream)(struct blas *handle, struct stream *stream)
{
    CALL(NAME("cublasSetStream_v2", "rocblas_set_stream"));
    handle->stream = stream;
    return done(OK);
}

const char *NAME(cublasGetStatusString, rocblas_status_to_string)(int status)
{
    return status ? "a status of the fake" : "success";
}

static int on_device(uint64_t start, uint64_t rows, uint64_t cols, uint64_t ld)
{
    return inside((void *)start, 8 * ((cols - 1) * ld + rows), 0);
}

static void gemm_work(const uint64_t *a)
{
    uint64_t m = a[0], n = a[1], k = a[2], lda = a[4], ldb = a[6], ldc = a[8];
    const double *A = (double *)a[3], *B = (double *)a[5];
    double *C = (double *)a[7];
    if (!on_device(a[3], m, k, lda) || !on_device(a[5], k, n, ldb) || !on_device(a[7], m, n, ldc)) { fault = ILLEGAL_ADDRESS; return; }
    /* C - A B, or A B. */
    double sign = a[9] ? 1.0 : -1.0;
    for (uint64_t j = 0; j < n; j++) {
        for (uint64_t i = 0; a[9] && i < m; i++) C[i + j * ldc] = 0.0;
        for (uint64_t l = 0; l < k; l++)
            for (uint64_t i = 0; i < m; i++) C[i + j * ldc] += sign * A[i + l * lda] * B[l + j * ldb];
    }
}

static int queue_blas(struct blas *handle, void (*work)(const uint64_t *), const uint64_t *arguments, size_t bytes)
{
    struct operation o = {.kind = WORK, .work = work};
    memcpy(o.arguments, arguments, bytes);
    queue(handle->stream, o);
    return OK;
}

int NAME(cublasDgemm_v2, rocblas_dgemm)(struct blas *handle, int ta, int tb, int m, int n, int k, const double *alpha, uint64_t A,
                                        int lda, uint64_t B, int ldb, const double *beta, uint64_t C, int ldc)
{
    CALL(NAME("cublasDgemm_v2", "rocblas_dgemm"));
    if (ta != NOT_TRANSPOSED || tb != NOT_TRANSPOSED || !((*alpha == -1.0 && *beta == 1.0) || (*alpha == 1.0 && *beta == 0.0)))
        return done(INVALID_VALUE);
    uint64_t arguments[] = {m, n, k, A, lda, B, ldb, C, ldc, *beta == 0.0};
    return done(queue_blas(handle, gemm_work, arguments, sizeof arguments));
}

static void trsm_work(const uint64_t *a)
{
    uint64_t m = a[0], n = a[1], lda = a[3], ldb = a[5];
    const double *L = (double *)a[2];
    double *B = (double *)a[4];
    if (!on_device(a[2], m, m, lda) || !on_device(a[4], m, n, ldb)) { fault = ILLEGAL_ADDRESS; return; }
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t l = 0; l < m; l++)
            for (uint64_t i = l + 1; i < m; i++) B[i + j * ldb] -= L[i + l * lda] * B[l + j * ldb];
}

int NAME(cublasDtrsm_v2, rocblas_dtrsm)(struct blas *handle, int side, int uplo, int trans, int diag, int m, int n,
                                        const double *alpha, uint64_t A, int lda, uint64_t B, int ldb)
{
    CALL(NAME("cublasDtrsm_v2", "rocblas_dtrsm"));
    if (side != LEFT || uplo != LOWER || trans != NOT_TRANSPOSED || diag != UNIT || *alpha != 1.0) return done(INVALID_VALUE);
    uint64_t arguments[] = {m, n, A, lda, B, ldb};
    return done(queue_blas(handle, trsm_work, arguments, sizeof arguments));
}

static void trsv_work(const uint64_t *a)
{
    uint64_t n = a[0], ld = a[2];
    const double *U = (double *)a[1];
    double *x = (double *)a[3];
    if (!on_device(a[1], n, n, ld) || !on_device(a[3], n, 1, n)) { fault = ILLEGAL_ADDRESS; return; }
    for (uint64_t j = n; j-- > 0;) {
        x[j] /= U[j + j * ld];
        for (uint64_t i = 0; i < j; i++) x[i] -= U[i + j * ld] * x[j];
    }
}

int NAME(cublasDtrsv_v2, rocblas_dtrsv)(struct blas *handle, int uplo, int trans, int diag, int n, uint64_t A, int lda, uint64_t x,
                                        int incx)
{
    CALL(NAME("cublasDtrsv_v2", "rocblas_dtrsv"));
    if (uplo != UPPER || trans != NOT_TRANSPOSED || diag != NOT_UNIT || incx != 1) return done(INVALID_VALUE);
    uint64_t arguments[] = {n, A, lda, x};
    return done(queue_blas(handle, trsv_work, arguments, sizeof arguments));
}

static void gemv_work(const uint64_t *a)
{
    uint64_t m = a[0], n = a[1], ld = a[3];
    const double *A = (double *)a[2], *x = (double *)a[4];
    double *y = (double *)a[5];
    if (!on_device(a[2], m, n, ld) || !on_device(a[4], n, 1, n) || !on_device(a[5], m, 1, m)) { fault = ILLEGAL_ADDRESS; return; }
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) y[i] -= A[i + j * ld] * x[j];
}

int NAME(cublasDgemv_v2, rocblas_dgemv)(struct blas *handle, int trans, int m, int n, const double *alpha, uint64_t A, int lda,
                                        uint64_t x, int incx, const double *beta, uint64_t y, int incy)
{
    CALL(NAME("cublasDgemv_v2", "rocblas_dgemv"));
    if (trans != NOT_TRANSPOSED || *alpha != -1.0 || *beta != 1.0 || incx != 1 || incy != 1) return done(INVALID_VALUE);
    uint64_t arguments[] = {m, n, A, lda, x, y};
    return done(queue_blas(handle, gemv_work, arguments, sizeof arguments));
}

/* Compiler. */
int NAME(nvrtcVersion, hiprtcVersion)(int *major, int *minor)
{
    *major = NAME(12, 5);
    *minor = NAME(9, 2);
    return OK;
}

int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void **program, const char *source, const char *name, int headers, void *h, void *n)
{
    CALL(NAME("nvrtcCreateProgram", "hiprtcCreateProgram"));
    (void)h;
    (void)n;
    if (headers || !strstr(source, "KERNEL hpl_gather") || !name) return done(3);
    programs++;
    *program = (void *)source;
    return done(OK);
}

int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void **program)
{
    pthread_mutex_lock(&lock);
    programs--;
    *program = NULL;
    return done(OK);
}

int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void *program, int count, const char **options)
{
    CALL(NAME("nvrtcCompileProgram", "hiprtcCompileProgram"));
    (void)program;
    int right = NAME(count == 1 && !strcmp(options[0], "--gpu-architecture=sm_90"), count == 0 && !options);
    return done(right ? OK : 5);
}

static const char compiler_log[] = "hpl_kernels.cu(1): error: asked for by the test";
int NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void *program, size_t *size)
{
    (void)program;
    *size = sizeof compiler_log;
    return OK;
}
int NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void *program, char *log)
{
    (void)program;
    memcpy(log, compiler_log, sizeof compiler_log);
    return OK;
}
int NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(void *program, size_t *size)
{
    (void)program;
    *size = sizeof image;
    return OK;
}
int NAME(nvrtcGetCUBIN, hiprtcGetCode)(void *program, char *code)
{
    (void)program;
    memcpy(code, image, sizeof image);
    return OK;
}
const char *NAME(nvrtcGetErrorString, hiprtcGetErrorString)(int error)
{
    return error == 6 ? "COMPILATION_ERROR" : "an error of the fake compiler";
}
#ifndef HIP
int nvrtcGetNumSupportedArchs(int *count) { *count = 2; return OK; }
int nvrtcGetSupportedArchs(int *archs) { archs[0] = 80; archs[1] = 90; return OK; }
int nvrtcGetPTXSize(void *program, size_t *size) { (void)program; *size = 0; return 1; }
int nvrtcGetPTX(void *program, char *ptx) { (void)program; (void)ptx; return 1; }
#endif

__attribute__((destructor)) static void tell_what_is_left(void)
{
    const char *path = getenv("FAKE_GPU_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "contexts %ld memories %ld pinned %ld ranges %ld streams %ld events %ld modules %ld handles %ld programs %ld\n",
            contexts, memories, pinned_memories, pinned_ranges, streams, events, modules, handles, programs);
    fclose(file);
}
