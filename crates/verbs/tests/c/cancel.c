/* Threads that wait for events are ended with pthread_cancel, as many programs do. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_comp_channel *channel;

static void *completions(void *unused)
{
	struct ibv_cq *cq;
	void *own;

	ibv_get_cq_event(channel, &cq, &own);
	return NULL;
}

static void *asynchronous(void *unused)
{
	struct ibv_async_event event;

	ibv_get_async_event(context, &event);
	return NULL;
}

/* While a thread is within a call that does not wait, it goes on to the call's end. */
static void *busy(void *unused)
{
	for (;;) {
		struct ibv_pd *pd = ibv_alloc_pd(context);
		if (pd)
			ibv_dealloc_pd(pd);
		pthread_testcancel();
	}
}

static int ends(void *(*work)(void *), const char *name)
{
	pthread_t thread;
	void *outcome = NULL;

	pthread_create(&thread, NULL, work, NULL);
	usleep(50000);
	pthread_cancel(thread);
	pthread_join(thread, &outcome);
	printf("%s %s\n", outcome == PTHREAD_CANCELED ? "ok" : "NOT OK", name);
	return outcome == PTHREAD_CANCELED;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int good;

	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	channel = ibv_create_comp_channel(context);
	good = ends(completions, "ibv_get_cq_event");
	good &= ends(asynchronous, "ibv_get_async_event");
	good &= ends(busy, "a busy thread");
	good &= !ibv_destroy_comp_channel(channel) && !ibv_close_device(context);
	puts(good ? "done" : "failed");
	return !good;
}
