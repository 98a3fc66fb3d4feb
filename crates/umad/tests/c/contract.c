/* What a program that was compiled against Debian's headers relies on. Run without a server: there is no adapter. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

#define CHECK(condition) printf("%s %s\n", (condition) ? "ok" : "NOT OK", #condition)

static void structures(void)
{
	CHECK(umad_size() == sizeof(struct ib_user_mad));
	CHECK(sizeof(ib_mad_addr_t) == 44);
	CHECK(offsetof(struct ib_user_mad, addr) == 20);
	CHECK(offsetof(struct ib_user_mad, data) == 64);
	CHECK(sizeof(umad_port_t) == 112);
	CHECK(offsetof(umad_port_t, capmask) == 52);
	CHECK(offsetof(umad_port_t, port_guid) == 64);
	CHECK(offsetof(umad_port_t, pkeys) == 80);
	CHECK(offsetof(umad_port_t, link_layer) == 88);
	CHECK(sizeof(umad_ca_t) == 208);
	CHECK(offsetof(umad_ca_t, node_guid) == 112);
	CHECK(offsetof(umad_ca_t, ports) == 128);
	CHECK(sizeof(struct umad_reg_attr) == 32);
	CHECK(offsetof(struct umad_reg_attr, method_mask) == 8);
}

static void buffers(void)
{
	char raw[sizeof(struct ib_user_mad) + 257];
	/* Programs put buffers anywhere. */
	void *umad = raw + 1;
	ib_mad_addr_t *address;
	ib_mad_addr_t route;

	memset(raw, 0, sizeof raw);
	CHECK((char *)umad_get_mad(umad) == (char *)umad + 64);
	address = umad_get_mad_addr(umad);
	CHECK((char *)address == (char *)umad + 20);
	CHECK(umad_set_addr(umad, 0x1234, 1, 5, 0x80010000) == 0);
	CHECK(address->lid == htons(0x1234) && address->qpn == htonl(1));
	CHECK(address->sl == 5 && address->qkey == htonl(0x80010000));
	CHECK(umad_set_addr_net(umad, htons(7), htonl(2), 3, htonl(9)) == 0);
	CHECK(address->lid == htons(7) && address->qpn == htonl(2) && address->qkey == htonl(9));
	CHECK(umad_set_pkey(umad, 4) == 0 && umad_get_pkey(umad) == 4);
	memset(&route, 0, sizeof route);
	route.hop_limit = 9;
	route.gid[15] = 1;
	CHECK(umad_set_grh(umad, &route) == 0 && address->grh_present == 1);
	CHECK(address->hop_limit == 9 && address->gid[15] == 1 && address->lid == htons(7));
	CHECK(umad_set_grh(umad, NULL) == 0 && address->grh_present == 0);
	((struct ib_user_mad *)umad)->status = 110;
	CHECK(umad_status(umad) == 110);
}

static void without_a_server(void)
{
	char names[4][UMAD_CA_NAME_LEN];
	char path[256];
	umad_ca_t ca;
	umad_port_t port;
	__be64 guids[8];
	int length = 256;
	char buffer[512];

	CHECK(umad_init() == 0);
	CHECK(umad_get_cas_names(names, 4) == 0);
	CHECK(umad_get_ca("softfabric0", &ca) < 0 && errno > 0);
	CHECK(umad_get_ca("mlx5_0", &ca) == -ENODEV);
	CHECK(umad_get_port(NULL, 0, &port) < 0);
	CHECK(umad_get_ca_portguids(NULL, guids, 8) < 0);
	CHECK(umad_open_port(NULL, 0) < 0);
	CHECK(umad_open_port("mlx5_0", 1) == -ENODEV);
	CHECK(umad_get_issm_path(NULL, 1, path, sizeof path) < 0);
	CHECK(umad_get_issm_path(NULL, 1, path, 3) == -ENAMETOOLONG);
	errno = 0;
	CHECK(umad_close_port(-1) == -EINVAL && errno == EINVAL);
	CHECK(umad_register(12345, 3, 2, 1, NULL) == -EINVAL);
	CHECK(umad_register_oui(12345, 3, 1, NULL, NULL) == -EINVAL);
	CHECK(umad_unregister(12345, 0) == -EINVAL);
	CHECK(umad_unregister(12345, 99) == -EINVAL);
	CHECK(umad_send(-1, 0, buffer, 256, 0, 0) == -EBADF);
	CHECK(umad_send(-1, 0, NULL, 256, 0, 0) == -EINVAL);
	CHECK(umad_send(-1, 0, buffer, -5, 0, 0) == -EINVAL);
	CHECK(umad_recv(-1, NULL, &length, 0) == -EINVAL);
	CHECK(umad_get_ca_device_list() == NULL && errno == 0);
	umad_free_ca_device_list(NULL);
	CHECK(umad_release_ca(NULL) == -ENODEV);
	CHECK(umad_release_port(NULL) == -ENODEV);
	CHECK(umad_done() == 0);
}

static void words(void)
{
	CHECK(!strcmp(umad_class_str(3), "SA"));
	CHECK(!strcmp(umad_method_str(3, 0x12), "GetTable"));
	CHECK(!strcmp(umad_method_str(1, 0x81), "GetResp"));
	CHECK(!strcmp(umad_attribute_str(1, htons(0x11)), "Node Info"));
	CHECK(!strcmp(umad_attribute_str(3, htons(0x35)), "Path Record"));
	CHECK(!strcmp(umad_common_mad_status_str(htons(0x1c)), "Invalid attribute / modifier field"));
	CHECK(!strcmp(umad_sa_mad_status_str(htons(0x0300)), "No Records"));
	CHECK(umad_class_str(0xee) && umad_method_str(9, 0x7f) && umad_attribute_str(77, 1));
}

static void lists(void)
{
	struct umad_device_node c = { NULL, "c" }, a = { &c, "a" }, b = { &a, "b" };
	struct umad_device_node *head = &b;

	CHECK(umad_sort_ca_device_list(&head, 3) == 0);
	CHECK(head == &a && a.next == &b && b.next == &c && c.next == NULL);
}

static void *waiter(void *socket)
{
	char buffer[512];
	int length = 256;

	umad_recv(*(int *)socket, buffer, &length, -1);
	return NULL;
}

/* OpenSM ends its threads in this way while they wait for datagrams. */
static void cancelled(void)
{
	int sockets[2];
	pthread_t thread;
	void *outcome = NULL;

	socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
	CHECK(pthread_create(&thread, NULL, waiter, sockets) == 0);
	usleep(50000);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &outcome) == 0);
	CHECK(outcome == PTHREAD_CANCELED);
}

int main(void)
{
	structures();
	buffers();
	without_a_server();
	words();
	lists();
	cancelled();
	puts("done");
	return 0;
}
