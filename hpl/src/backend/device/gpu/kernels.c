/* The operations of the device that its BLAS lacks: compiled at start by NVRTC or hipRTC for the device found.
 *
 * C that is also CUDA C: no shared memory and no barrier, so that tests can run each thread in turn on the host, where they
 * define KERNEL, X, Y and their numbers. A thread works on the elements x, x + X_COUNT, ... of the columns y, y + Y_COUNT, ...
 * All arguments have eight bytes. */

typedef unsigned long long u64;

#ifndef KERNEL
#define KERNEL extern "C" __global__ void
#define X ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define X_COUNT ((u64)gridDim.x * blockDim.x)
#define Y ((u64)blockIdx.y)
#define Y_COUNT ((u64)gridDim.y)
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
