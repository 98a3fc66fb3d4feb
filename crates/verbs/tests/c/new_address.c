/* Connects to itself after the interface has got an address more than when its device was opened. */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

static struct ibv_qp_init_attr queues(void)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };

	return init;
}

static struct rdma_addrinfo *address(int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *found = NULL;

	if (rdma_getaddrinfo("192.0.2.9", "7471", &hints, &found))
		perror("rdma_getaddrinfo");
	return found;
}

static void *client(void *nothing)
{
	struct ibv_qp_init_attr init = queues();
	struct rdma_cm_id *id;

	if (rdma_create_ep(&id, address(0), NULL, &init))
		perror("rdma_create_ep");
	else if (rdma_connect(id, NULL))
		perror("rdma_connect");
	else
		return id;
	return nothing;
}

int main(void)
{
	struct ibv_qp_init_attr init = queues();
	struct rdma_cm_id *listener, *id;
	pthread_t thread;
	void *connected = NULL;

	if (rdma_create_ep(&listener, address(RAI_PASSIVE), NULL, &init) || rdma_listen(listener, 1))
		return perror("listener"), 1;
	/* Before all others in the table of who asks now. */
	if (system("ip addr del 192.0.2.9/32 dev lo; ip addr add 192.0.2.1/32 dev lo; ip addr add 192.0.2.9/32 dev lo"))
		return 2;
	pthread_create(&thread, NULL, client, NULL);
	if (rdma_get_request(listener, &id) || rdma_accept(id, NULL))
		return perror("server"), 3;
	pthread_join(thread, &connected);
	puts(connected ? "connected" : "not connected");
	return 0;
}
