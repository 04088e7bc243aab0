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
#define DEVICE static __device__
#define SHARED __shared__
#define THREAD ((u64)threadIdx.x)
#define THREADS ((u64)blockDim.x)
#define BLOCK ((u64)blockIdx.x)
#define BLOCKS ((u64)gridDim.x)
#define SYNC_THREADS() __syncthreads()
#define FENCE() __threadfence()
#define ADD_ONE(counter) atomicAdd(counter, 1ull)
#define WAIT_A_MOMENT()
#define UNROLL _Pragma("unroll")
#define DYNAMIC_SHARED(name) extern __shared__ double name[]
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

/* Most columns that hpl_factor takes, and most threads of its blocks. */
#define WIDEST 32
#define MOST_THREADS 512

/* Loads that a thread has in flight: memory answers late. */
#define AT_ONCE 16

/* A row with the absolute value of its element in the column, the candidate of a thread, a block or all. */
typedef struct { double size; u64 row; } candidate;

/* The larger of two: NaN above all numbers, among equals the upper row. */
DEVICE candidate larger(candidate a, candidate b)
{
    int a_nan = a.size != a.size, b_nan = b.size != b.size;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (!a_nan && a.size != b.size) return a.size > b.size ? a : b;
    return a.row < b.row ? a : b;
}

/* The largest candidate of the first `count` threads of a block. Each thread may use `all` again after the next SYNC_THREADS. */
DEVICE candidate largest(candidate own, candidate *all, u64 count)
{
    if (count > THREADS) count = THREADS;
    all[THREAD] = own;
    while (count > 1) {
        u64 left = (count + 3) / 4;
        SYNC_THREADS();
        if (THREAD < left) {
            for (u64 other = THREAD + left; other < count; other += left) all[THREAD] = larger(all[THREAD], all[other]);
        }
        count = left;
    }
    SYNC_THREADS();
    return all[0];
}

/* Waits until all blocks have called it `round` times; what they wrote before is visible then to loads that are volatile. All
 * blocks must be on the device at the same time. */
DEVICE void all_blocks(volatile u64 *arrived, u64 round)
{
    SYNC_THREADS();
    if (THREAD == 0) {
        FENCE();
        ADD_ONE((u64 *)arrived);
        while (*arrived < round * BLOCKS) WAIT_A_MOMENT();
        FENCE();
    }
    SYNC_THREADS();
}

/* L\U of a, `cols` <= WIDEST columns and `rows` >= `cols` rows, with partial pivoting. Row j was exchanged with row
 * pivots[j] - first; values[j] is the pivot. Each block has some rows, in shared memory if that is large enough (cached). At each
 * column it updates the column by those before it (left-looking), and writes its candidate with that row to `work`, as the block of
 * the diagonal does with the current row; after one wait for all blocks each of them computes the row of U and exchanges the rows
 * that it has. arrived[0]: zero at first. work: two halves, used in turn, each with (2 + cols) elements of each block and cols for
 * the current row. */
KERNEL_OF(MOST_THREADS) hpl_factor(double *a, u64 ld, u64 rows, u64 cols, u64 first, double *pivots, double *values,
                                    u64 *arrived, double *work, u64 cached)
{
    DYNAMIC_SHARED(cache);
    SHARED candidate candidates[MOST_THREADS];
    SHARED double u[WIDEST * WIDEST], row[WIDEST];
    u64 share = (rows + BLOCKS - 1) / BLOCKS, begin = share * BLOCK, end = begin + share < rows ? begin + share : rows;
    /* Row begin + i, column c of this block is own[i + c * step]. */
    double *own = cached ? cache : a + (begin < rows ? begin : 0);
    u64 step = cached ? share : ld, count = begin < end ? end - begin : 0;
    double pivot = 0.0;
    if (cached) {
        for (u64 c = 0; c < cols; c++) {
            for (u64 i = THREAD; i < count; i += THREADS) own[i + c * step] = a[begin + i + c * ld];
        }
    }
    for (u64 j = 0; j < cols; j++) {
        candidate best = {-1.0, rows};
        for (u64 i = THREAD; i < count; i += THREADS) {
            if (begin + i < j) continue;
            double element = own[i + j * step], l = j > 0 ? own[i + (j - 1) * step] : 0.0;
            for (u64 p = 0; p + 1 < j; p += AT_ONCE) {
                double some[AT_ONCE];
                UNROLL for (u64 x = 0; x < AT_ONCE; x++) some[x] = p + x + 1 < j ? own[i + (p + x) * step] : 0.0;
                UNROLL for (u64 x = 0; x < AT_ONCE; x++) if (p + x + 1 < j) element -= some[x] * u[(p + x) * WIDEST + j];
            }
            if (j > 0) {
                if (pivot != 0.0) l /= pivot;
                own[i + (j - 1) * step] = l;
                element -= l * u[(j - 1) * WIDEST + j];
            }
            own[i + j * step] = element;
            candidate of_row = {element < 0.0 ? -element : element, begin + i};
            best = larger(best, of_row);
        }
        best = largest(best, candidates, THREADS);
        double *half = work + (j % 2) * (BLOCKS * (2 + cols) + cols);
        volatile double *mine = half + BLOCK * (2 + cols), *current = half + BLOCKS * (2 + cols);
        int has_diagonal = begin <= j && j < end;
        if (THREAD == 0) {
            mine[0] = best.size;
            mine[1] = (double)best.row;
        }
        for (u64 c = THREAD; c < cols; c += THREADS) {
            if (best.row < rows) mine[2 + c] = own[best.row - begin + c * step];
            if (has_diagonal) current[c] = own[j - begin + c * step];
        }
        all_blocks(arrived, j + 1);
        candidate chosen = {-1.0, rows};
        for (u64 b = THREAD; b < BLOCKS; b += THREADS) {
            volatile double *of_block = half + b * (2 + cols);
            candidate next = {of_block[0], (u64)of_block[1]};
            chosen = larger(chosen, next);
        }
        chosen = largest(chosen, candidates, BLOCKS);
        volatile double *best_row = half + chosen.row / share * (2 + cols) + 2;
        for (u64 c = THREAD; c < cols; c += THREADS) row[c] = best_row[c];
        SYNC_THREADS();
        for (u64 c = THREAD; c < cols; c += THREADS) {
            double element = row[c];
            if (c > j) {
                for (u64 p = 0; p < j; p += 4) {
                    UNROLL for (u64 x = 0; x < 4; x++) if (p + x < j) element -= row[p + x] * u[(p + x) * WIDEST + c];
                }
            }
            if (c >= j) u[j * WIDEST + c] = element;
            if (chosen.row != j && begin <= chosen.row && chosen.row < end) own[chosen.row - begin + c * step] = current[c];
            if (has_diagonal) own[j - begin + c * step] = element;
        }
        if (BLOCK == 0 && THREAD == 0) {
            pivots[j] = (double)(first + chosen.row);
            values[j] = row[j];
        }
        SYNC_THREADS();
        pivot = u[j * WIDEST + j];
    }
    for (u64 i = THREAD; i < count; i += THREADS) {
        if (begin + i >= cols && pivot != 0.0) own[i + (cols - 1) * step] /= pivot;
    }
    if (cached) {
        for (u64 c = 0; c < cols; c++) {
            for (u64 i = THREAD; i < count; i += THREADS) a[begin + i + c * ld] = own[i + c * step];
        }
    }
}

/* Most rows that hpl_permute moves, and columns that a block of hpl_interchange has in shared memory. */
#define MOST_MOVED 4096
#define COLUMNS 8

/* Of each column of a: row j <-> row pivots[j] - first, for j = 0, 1, ... in this order. WIDEST exchanges at once: each row that they
 * touch gets the element of the row from which they move it. */
KERNEL hpl_interchange(const double *pivots, u64 count, u64 first, double *a, u64 ld, u64 cols)
{
    SHARED u64 other[WIDEST], from[2 * WIDEST], to[2 * WIDEST];
    SHARED double moved[COLUMNS * 2 * WIDEST];
    for (u64 start = 0; start < count; start += WIDEST) {
        u64 some = count - start < WIDEST ? count - start : WIDEST;
        SYNC_THREADS();
        for (u64 x = THREAD; x < some; x += THREADS) other[x] = (u64)pivots[start + x] - first;
        SYNC_THREADS();
        for (u64 x = THREAD; x < 2 * some; x += THREADS) {
            u64 row = x < some ? start + x : other[x - some];
            u64 source = row;
            for (u64 j = some; j-- > 0;) source = source == start + j ? other[j] : source == other[j] ? start + j : source;
            from[x] = source;
            to[x] = row;
        }
        SYNC_THREADS();
        for (u64 c = COLUMNS * BLOCK; c < cols; c += COLUMNS * BLOCKS) {
            u64 these = cols - c < COLUMNS ? cols - c : COLUMNS;
            for (u64 x = THREAD; x < 2 * some * these; x += THREADS) moved[x] = a[from[x % (2 * some)] + (c + x / (2 * some)) * ld];
            SYNC_THREADS();
            /* Rows that occur twice get the same element twice. */
            for (u64 x = THREAD; x < 2 * some * these; x += THREADS) a[to[x % (2 * some)] + (c + x / (2 * some)) * ld] = moved[x];
            SYNC_THREADS();
        }
    }
}

/* Of each column of a: row pairs[2 k + 1] <- row pairs[2 k], for count <= MOST_MOVED pairs, all of which are read first. */
KERNEL_OF(MOST_THREADS) hpl_permute(const u64 *pairs, u64 count, double *a, u64 ld, u64 cols)
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
