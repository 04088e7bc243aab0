/* The operations of the device that its BLAS lacks: compiled at start by NVRTC or hipRTC for the device found.
 *
 * C that is also CUDA C. Tests run each thread in turn on the host, where they define KERNEL, X, Y and their numbers. A thread
 * works on the elements x, x + X_COUNT, ... of the columns y, y + Y_COUNT, ... Of kernels whose threads wait for each other, tests
 * run the blocks side by side, each of one thread: they define what comes after Y_COUNT. All arguments have eight bytes. */

typedef unsigned long long u64;

#ifndef KERNEL
#define KERNEL extern "C" __global__ void
#define KERNEL_OF(threads) extern "C" __global__ void __launch_bounds__(threads)
#define X ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define X_COUNT ((u64)gridDim.x * blockDim.x)
#define Y ((u64)blockIdx.y)
#define Y_COUNT ((u64)gridDim.y)
#define INLINE static __device__ __forceinline__
#define SHARED __shared__
#define ALIGNED __align__(16)
#define THREAD ((u64)threadIdx.x)
#define THREADS ((u64)blockDim.x)
#define BLOCK ((u64)blockIdx.x)
#define BLOCKS ((u64)gridDim.x)
#define SYNC_THREADS() __syncthreads()
#define WAIT_A_MOMENT()
#define UNROLL _Pragma("unroll")
/* Elements of a panel that a thread of hpl_factor has in registers. */
#define HELD 32
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define WARP_MAX(value) __reduce_max_sync(~0u, value)
#define WARP_MIN(value) __reduce_min_sync(~0u, value)
#endif
#endif

#define FOR_X(x, end) for (u64 x = X; x < (end); x += X_COUNT)
#define FOR_Y(y, end) for (u64 y = Y; y < (end); y += Y_COUNT)

/* to <- from */
KERNEL hpl_copy(const double *from, u64 from_ld, double *to, u64 to_ld, u64 rows, u64 cols)
{
    FOR_Y(j, cols) FOR_X(i, rows) to[i + j * to_ld] = from[i + j * from_ld];
}

/* to <- transposed from; rows and cols are those of from. */
KERNEL hpl_transpose(const double *from, u64 from_ld, double *to, u64 to_ld, u64 rows, u64 cols)
{
    FOR_Y(j, cols) FOR_X(i, rows) to[j + i * to_ld] = from[i + j * from_ld];
}

/* Row k of to <- row rows[k] of from. Element (k, j) of to is at k * to_row + j * to_col. */
KERNEL hpl_gather(const u64 *rows, u64 count, const double *from, u64 from_ld, double *to, u64 to_row, u64 to_col,
                  u64 cols)
{
    FOR_Y(j, cols) FOR_X(k, count) to[k * to_row + j * to_col] = from[rows[k] + j * from_ld];
}

/* Row pairs[2 k + 1] of to <- row pairs[2 k] of from. Element (i, j) of from is at i * from_row + j * from_col. */
KERNEL hpl_scatter(const u64 *pairs, u64 count, const double *from, u64 from_row, u64 from_col, double *to, u64 to_ld,
                   u64 cols)
{
    FOR_Y(j, cols) FOR_X(k, count)
    {
        to[pairs[2 * k + 1] + j * to_ld] = from[pairs[2 * k] * from_row + j * from_col];
    }
}

/* Element (i, j) of HPL's matrix. rows: two numbers for each row, a step of HPL's generator from the top of a column to the row;
 * tops: the state of the generator at the top of each column. The product with 2^-64 is exact, so that the value has the two
 * roundings of the host, also where it is contracted with the subtraction. */
#define ELEMENT(rows, tops, i, j) (0.5 - (double)((rows)[2 * (i)] * (tops)[j] + (rows)[2 * (i) + 1]) * 5.421010862427522170037264e-20)

/* a <- HPL's matrix */
KERNEL hpl_generate(const u64 *rows, const u64 *tops, double *a, u64 ld, u64 row_count, u64 cols)
{
    FOR_Y(j, cols) FOR_X(i, row_count) a[i + j * ld] = ELEMENT(rows, tops, i, j);
}

/* Of each row: r <- -sum of a, s <- sum of |a|. */
KERNEL hpl_row_sums(const double *a, u64 ld, double *r, double *s, u64 rows, u64 cols)
{
    if (Y != 0) return;
    FOR_X(i, rows)
    {
        double sum = 0.0, absolute = 0.0;
        for (u64 j = 0; j < cols; j++) {
            double element = a[i + j * ld];
            sum -= element;
            absolute += element < 0.0 ? -element : element;
        }
        r[i] = sum;
        s[i] = absolute;
    }
}

/* Of each row of HPL's matrix [A | b]: r <- b - A x, s <- sum of |a|. globals: the global index of each column, that of b is n. */
KERNEL hpl_check_rows(const u64 *rows, const u64 *tops, const u64 *globals, const double *x, u64 n, double *r, double *s,
                      u64 row_count, u64 cols)
{
    if (Y != 0) return;
    FOR_X(i, row_count)
    {
        double sum = 0.0, absolute = 0.0;
        for (u64 j = 0; j < cols; j++) {
            double element = ELEMENT(rows, tops, i, j);
            if (globals[j] == n) {
                sum += element;
            } else {
                sum -= element * x[globals[j]];
                absolute += element < 0.0 ? -element : element;
            }
        }
        r[i] = sum;
        s[i] = absolute;
    }
}

/* Of each column of HPL's matrix: sums <- sum of |a|, 0 for b; b_norm <- the largest |b|, 0 without b. */
KERNEL hpl_check_cols(const u64 *rows, const u64 *tops, const u64 *globals, u64 n, double *sums, double *b_norm,
                      u64 row_count, u64 cols)
{
    if (Y != 0) return;
    if (X == 0 && (cols == 0 || globals[cols - 1] != n)) *b_norm = 0.0;
    FOR_X(j, cols)
    {
        double sum = 0.0, largest = 0.0;
        for (u64 i = 0; i < row_count; i++) {
            double element = ELEMENT(rows, tops, i, j);
            double absolute = element < 0.0 ? -element : element;
            sum += absolute;
            largest = absolute > largest ? absolute : largest;
        }
        if (globals[j] == n) {
            sums[j] = 0.0;
            *b_norm = largest;
        } else {
            sums[j] = sum;
        }
    }
}

/* Most columns that hpl_factor takes, and threads of its blocks. */
#define WIDEST 32
#define FACTOR_THREADS 512

/* A candidate for the pivot: the larger absolute value has the larger key, NaN above all numbers; 0 is no row. */
typedef struct { u64 key; unsigned row; } candidate;
#define NO_ROW (~0u)

typedef union { double number; u64 bits; } word;

INLINE u64 key_of(double element)
{
    word of = {element};
    return (of.bits & ~(1ull << 63)) + 1;
}

/* The one with the larger key, among equals the upper row. */
INLINE candidate larger(candidate a, candidate b)
{
    return a.key > b.key || (a.key == b.key && a.row < b.row) ? a : b;
}

#ifdef WARP_MAX
INLINE candidate largest_of_warp(candidate own)
{
    unsigned high = (unsigned)(own.key >> 32), low = (unsigned)own.key, most_high = WARP_MAX(high);
    unsigned most_low = WARP_MAX(high == most_high ? low : 0);
    unsigned row = WARP_MIN(high == most_high && low == most_low ? own.row : NO_ROW);
    candidate found = {(u64)most_high << 32 | most_low, row};
    return found;
}

/* The largest candidate of the first `count` threads of a block. `all`: FACTOR_THREADS in shared memory. */
INLINE candidate largest(candidate own, candidate *all, u64 count)
{
    own = largest_of_warp(own);
    SYNC_THREADS();
    if (THREAD % 32 == 0) all[THREAD / 32] = own;
    SYNC_THREADS();
    candidate none = {0, NO_ROW};
    return largest_of_warp(THREAD % 32 < (count + 31) / 32 ? all[THREAD % 32] : none);
}
#else
INLINE candidate largest(candidate own, candidate *all, u64 count)
{
    SYNC_THREADS();
    all[THREAD] = own;
    if (count > THREADS) count = THREADS;
    while (count > 16) {
        u64 left = (count + 15) / 16;
        SYNC_THREADS();
        if (THREAD < left) {
            for (u64 other = THREAD + left; other < count; other += left) all[THREAD] = larger(all[THREAD], all[other]);
        }
        count = left;
    }
    SYNC_THREADS();
    candidate best = all[0];
    for (u64 other = 1; other < count; other++) best = larger(best, all[other]);
    return best;
}
#endif

/* Eight bytes for another block: a packet of two words, each with four of them and the tag of the round. Who reads the tag in both has all,
 * so that nothing else needs to be complete: a fence beside an update takes longer than a column. */
INLINE void send(volatile u64 *packet, u64 bits, u64 tag)
{
    packet[0] = bits << 32 | tag;
    packet[1] = bits >> 32 << 32 | tag;
}

/* Waits for a packet with this tag. */
INLINE u64 receive(volatile u64 *packet, u64 tag)
{
    u64 low = packet[0], high = packet[1];
    while ((unsigned)low != (unsigned)tag || (unsigned)high != (unsigned)tag) {
        WAIT_A_MOMENT();
        low = packet[0];
        high = packet[1];
    }
    return high >> 32 << 32 | low >> 32;
}

/* What a block sends of a column: key and row of its candidate, and the elements of that row. */
#define SENT (2 + WIDEST)

/* hpl_factor with `width` columns, of which those from `cols` on are zero. A thread holds rows of `width` elements, HELD in all; their first
 * element is that of the current column, as the finished one goes to the end. Rows stay where they are: `place` is the row of
 * the block to which they belong now. */
INLINE void factor(double *a, u64 ld, u64 rows, unsigned cols, u64 first, double *pivots, double *values, volatile u64 *packets, u64 round,
                   const unsigned width, candidate *candidates, double *row, u64 *sender)
{
    const unsigned held_rows = HELD / width;
    double held[HELD];
    unsigned place[HELD];
    UNROLL for (unsigned k = 0; k < held_rows; k++) {
        u64 at = (BLOCK * held_rows + k) * THREADS + THREAD;
        place[k] = at < rows ? (unsigned)at : NO_ROW;
        UNROLL for (unsigned c = 0; c < width; c++) held[k * width + c] = at < rows && c < cols ? a[at + c * ld] : 0.0;
    }
    for (unsigned j = 0; j < cols; j++) {
        candidate best = {0, NO_ROW}, chosen = {0, NO_ROW};
        UNROLL for (unsigned k = 0; k < held_rows; k++) {
            candidate next = {j <= place[k] && place[k] != NO_ROW ? key_of(held[k * width]) : 0, place[k]};
            best = larger(best, next);
        }
        best = largest(best, candidates, THREADS);
        UNROLL for (unsigned k = 0; k < held_rows; k++) {
            if (best.key != 0 && place[k] == best.row) {
                UNROLL for (unsigned c = 0; c < width; c++) row[c] = held[k * width + c];
            }
        }
        SYNC_THREADS();
        /* Two halves in turn: all have read one when its second turn comes. */
        volatile u64 *half = packets + j % 2 * BLOCKS * SENT * 2, *own = half + BLOCK * SENT * 2;
        u64 tag = (round + j) & 0xffffffff, from = BLOCK;
        for (u64 c = THREAD; c < width; c += THREADS) {
            word element = {row[c]};
            send(own + 2 * (2 + c), element.bits, tag);
        }
        if (THREAD == 0) {
            send(own, best.key, tag);
            send(own + 2, best.row, tag);
        }
        for (u64 b = THREAD; b < BLOCKS; b += THREADS) {
            candidate next = {receive(half + b * SENT * 2, tag), (unsigned)receive(half + b * SENT * 2 + 2, tag)};
            if (larger(next, chosen).row == chosen.row) continue;
            chosen = next;
            from = b;
        }
        unsigned of_thread = chosen.row;
        chosen = largest(chosen, candidates, BLOCKS);
        if (of_thread == chosen.row) *sender = from;
        SYNC_THREADS();
        from = *sender;
        for (u64 c = THREAD; c < width; c += THREADS) {
            word element;
            element.bits = receive(half + (from * SENT + 2 + c) * 2, tag);
            row[c] = j + c < cols ? element.number : 0.0;
        }
        SYNC_THREADS();
        double pivot = row[0], inverse = pivot != 0.0 ? 1.0 / pivot : 1.0;
        if (BLOCK == 0 && THREAD == 0) {
            pivots[j] = (double)(first + chosen.row);
            values[j] = pivot;
        }
        UNROLL for (unsigned k = 0; k < held_rows; k++) {
            double l = held[k * width];
            int below = j <= place[k] && place[k] != chosen.row;
            if (below) l *= inverse;
            double multiplier = below ? l : 0.0;
            UNROLL for (unsigned c = 0; c + 1 < width; c++) held[k * width + c] = held[k * width + c + 1] - multiplier * row[c + 1];
            held[k * width + width - 1] = l;
            place[k] = place[k] == chosen.row ? j : place[k] == j ? chosen.row : place[k];
        }
    }
    UNROLL for (unsigned k = 0; k < held_rows; k++) {
        UNROLL for (unsigned c = 0; c < width; c++) {
            if (place[k] != NO_ROW && width <= c + cols) a[place[k] + (c + cols - width) * ld] = held[k * width + c];
        }
    }
}

/* L\U of a, `cols` <= WIDEST columns and `rows` >= `cols` rows, with partial pivoting. Row j was exchanged with row
 * pivots[j] - first; values[j] is the pivot. Each block has FACTOR_THREADS * HELD / width rows, where width is the power of two from
 * `cols` on, 4 at least; all blocks must be on the device at the same time, as they wait for each other at each column. packets: for each
 * block 4 * SENT words, of which none has one of the `cols` tags from `round` on. */
KERNEL_OF(FACTOR_THREADS) hpl_factor(double *a, u64 ld, u64 rows, u64 cols, u64 first, double *pivots, double *values, u64 *packets,
                                      u64 round)
{
    SHARED candidate candidates[FACTOR_THREADS];
    SHARED ALIGNED double row[WIDEST];
    SHARED u64 sender;
#define FACTOR(width) factor(a, ld, rows, (unsigned)cols, first, pivots, values, packets, round, width, candidates, row, &sender)
    if (cols > 16) FACTOR(32);
    else if (cols > 8) FACTOR(16);
    else if (cols > 4) FACTOR(8);
    else FACTOR(4);
}

/* Most rows that hpl_permute moves, and columns that a block of hpl_interchange has in shared memory. */
#define MOST_MOVED 4096
#define COLUMNS 8

/* Row j <-> row pivots[j] - first, for j = 0, 1, ... in this order, of all columns but the `skipped` ones from `left` on. If `solve`, these
 * are `count` <= 2 * WIDEST and begin with L1, and of each column to the right of them the first `count` rows <- L1^-1 times them.
 * WIDEST exchanges at once: each row that they touch gets the element of the row from which they move it. */
KERNEL hpl_interchange(const double *pivots, u64 count, u64 first, double *a, u64 ld, u64 left, u64 skipped, u64 cols, u64 solve)
{
    SHARED unsigned other[WIDEST], from[2 * WIDEST], to[2 * WIDEST];
    SHARED double moved[COLUMNS * 2 * WIDEST], l1[4 * WIDEST * WIDEST];
    u64 others = cols - skipped;
    unsigned lanes = THREADS < 32 ? 1 : 32, lane = THREAD % lanes, group = THREAD / lanes, groups = THREADS / lanes, rows = (unsigned)count;
#define COLUMN(c) (a + ((c) < left ? (c) : (c) + skipped) * ld)
    for (u64 start = 0; start < count; start += WIDEST) {
        unsigned some = count - start < WIDEST ? (unsigned)(count - start) : WIDEST, touched = 2 * some;
        SYNC_THREADS();
        for (unsigned x = THREAD; x < some; x += THREADS) other[x] = (unsigned)((u64)pivots[start + x] - first);
        SYNC_THREADS();
        for (unsigned x = THREAD; x < touched; x += THREADS) {
            unsigned at = (unsigned)start, row = x < some ? at + x : other[x - some], source = row;
            for (unsigned j = some; j-- > 0;) source = source == at + j ? other[j] : source == other[j] ? at + j : source;
            from[x] = source;
            to[x] = row;
        }
        SYNC_THREADS();
        for (u64 c = COLUMNS * BLOCK; c < others; c += COLUMNS * BLOCKS) {
            unsigned these = others - c < COLUMNS ? (unsigned)(others - c) : COLUMNS;
            for (unsigned x = THREAD; x < touched * these; x += THREADS) moved[x] = COLUMN(c + x / touched)[from[x % touched]];
            SYNC_THREADS();
            /* Rows that occur twice get the same element twice. */
            for (unsigned x = THREAD; x < touched * these; x += THREADS) COLUMN(c + x / touched)[to[x % touched]] = moved[x];
            SYNC_THREADS();
        }
    }
    if (!solve) return;
    for (unsigned x = THREAD; x < rows * rows; x += THREADS) l1[x] = a[x % rows + (left + x / rows) * ld];
    for (u64 c = COLUMNS * BLOCK; c < others; c += COLUMNS * BLOCKS) {
        unsigned end = others - c < COLUMNS ? (unsigned)(others - c) : COLUMNS, begin = c < left ? (unsigned)(left - c) : 0;
        for (unsigned y = begin + group; y < end; y += groups) {
            for (unsigned i = lane; i < rows; i += lanes) moved[y * rows + i] = COLUMN(c + y)[i];
        }
        for (unsigned k = 0; k < rows; k++) {
            SYNC_THREADS();
            for (unsigned y = begin + group; y < end; y += groups) {
                for (unsigned i = k + 1 + lane; i < rows; i += lanes) moved[y * rows + i] -= l1[i + k * rows] * moved[y * rows + k];
            }
        }
        SYNC_THREADS();
        for (unsigned y = begin + group; y < end; y += groups) {
            for (unsigned i = lane; i < rows; i += lanes) COLUMN(c + y)[i] = moved[y * rows + i];
        }
        SYNC_THREADS();
    }
}

/* Of each column of a: row pairs[2 k + 1] <- row pairs[2 k], for count <= MOST_MOVED pairs, all of which are read first. */
KERNEL_OF(FACTOR_THREADS) hpl_permute(const u64 *pairs, u64 count, double *a, u64 ld, u64 cols)
{
    SHARED double moved[MOST_MOVED];
    for (u64 c = BLOCK; c < cols; c += BLOCKS) {
        double *column = a + c * ld;
        for (u64 k = THREAD; k < count; k += THREADS) moved[k] = column[pairs[2 * k]];
        SYNC_THREADS();
        for (u64 k = THREAD; k < count; k += THREADS) column[pairs[2 * k + 1]] = moved[k];
        SYNC_THREADS();
    }
}
