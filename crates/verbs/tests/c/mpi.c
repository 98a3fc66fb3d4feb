/* Ranks that exchange messages and reduce numbers, and check every byte of what arrives. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint8_t byte_of(int rank, int size, int at)
{
	uint32_t mixed = (uint32_t)rank * 2654435761u + (uint32_t)size * 40503u + (uint32_t)at * 97u;

	return (uint8_t)(mixed >> 7 ^ mixed);
}

static void fail(const char *what, int rank, int size)
{
	fprintf(stderr, "rank %d: %s of %d bytes is wrong\n", rank, what, size);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Everybody sends to the next and receives from the one before. */
static void pass_on(int rank, int ranks, int size)
{
	uint8_t *out = malloc(size + 1), *in = malloc(size + 1);
	int from = (rank + ranks - 1) % ranks;
	MPI_Status status;
	int got;

	for (int at = 0; at < size; at++)
		out[at] = byte_of(rank, size, at);
	memset(in, 0xa5, size + 1);
	MPI_Sendrecv(out, size, MPI_BYTE, (rank + 1) % ranks, size & 0xfff, in, size, MPI_BYTE, from, size & 0xfff,
		     MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	if (got != size)
		fail("the length of a message", rank, size);
	for (int at = 0; at < size; at++)
		if (in[at] != byte_of(from, size, at))
			fail("a message", rank, size);
	if (in[size] != 0xa5)
		fail("what lies behind a message", rank, size);
	free(out);
	free(in);
}

/* All numbers are added up. */
static void add_up(int rank, int ranks, int count)
{
	int64_t *own = malloc(count * sizeof(*own)), *sum = malloc(count * sizeof(*sum));

	for (int at = 0; at < count; at++)
		own[at] = (int64_t)(rank + 1) * (at + 7);
	MPI_Allreduce(own, sum, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int at = 0; at < count; at++)
		if (sum[at] != (int64_t)ranks * (ranks + 1) / 2 * (at + 7))
			fail("a sum", rank, count * (int)sizeof(*sum));
	free(own);
	free(sum);
}

/* Everybody writes into the memory of the next. */
static void put(int rank, int ranks, int count)
{
	int from = (rank + ranks - 1) % ranks;
	int *own = malloc(count * sizeof(*own)), *window;
	MPI_Win handle;

	MPI_Win_allocate(count * sizeof(*window), sizeof(*window), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &handle);
	for (int at = 0; at < count; at++) {
		own[at] = rank * 1000003 + at;
		window[at] = -1;
	}
	MPI_Win_fence(0, handle);
	MPI_Put(own, count, MPI_INT, (rank + 1) % ranks, 0, count, MPI_INT, handle);
	MPI_Win_fence(0, handle);
	for (int at = 0; at < count; at++)
		if (window[at] != from * 1000003 + at)
			fail("what was put", rank, count * (int)sizeof(*own));
	MPI_Win_free(&handle);
	free(own);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 0, 1, 8, 1000, 4096, 8191, 65536, 300001, 2000003 };
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (unsigned at = 0; at < sizeof(sizes) / sizeof(*sizes); at++)
		pass_on(rank, ranks, sizes[at]);
	for (int count = 1; count < 200000; count *= 17)
		add_up(rank, ranks, count);
	put(rank, ranks, 5000);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, all as it should be\n", ranks);
	MPI_Finalize();
	return 0;
}
