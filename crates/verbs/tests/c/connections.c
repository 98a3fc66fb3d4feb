/* What librdmacm promises to programs, checked call by call: one process talks to itself, and to a child. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static int failures;

static void say(int good, const char *what, long found)
{
	if (!good) {
		failures++;
		printf("WRONG %s: %ld, errno %d (%s)\n", what, found, errno, strerror(errno));
	}
}

#define IS(what, expression, wanted)                                           \
	do {                                                                   \
		long found_ = (long)(expression);                              \
		say(found_ == (long)(wanted), what, found_);                   \
	} while (0)

/* Fails with -1 and errno. */
#define FAILS(what, expression, number)                                        \
	do {                                                                   \
		errno = 0;                                                     \
		long found_ = (long)(expression);                              \
		say(found_ == -1 && errno == (number), what, found_);          \
	} while (0)

#define MS_LONG 15000
#define MS_SHORT 50

static struct sockaddr_in address(const char *text, int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static int readable(struct rdma_event_channel *channel, int ms)
{
	struct pollfd one = { .fd = channel->fd, .events = POLLIN };

	return poll(&one, 1, ms);
}

/* The next event, which has to be of a type; the program ends where none comes. */
static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted,
				  const char *what)
{
	struct rdma_cm_event *event;

	if (readable(channel, MS_LONG) != 1 || rdma_get_cm_event(channel, &event)) {
		printf("WRONG %s: no event (%s)\n", what, strerror(errno));
		exit(1);
	}
	if (event->event != wanted) {
		printf("WRONG %s: %s with status %d, needed %s\n", what, rdma_event_str(event->event),
		       event->status, rdma_event_str(wanted));
		exit(1);
	}
	return event;
}

static int status_of(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted, const char *what)
{
	struct rdma_cm_event *event = next(channel, wanted, what);
	int status = event->status;

	rdma_ack_cm_event(event);
	return status;
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, space)) {
		printf("WRONG no identifier: %s\n", strerror(errno));
		exit(1);
	}
	return id;
}

static void bind_to(struct rdma_cm_id *id, const char *text, int port)
{
	struct sockaddr_in to = address(text, port);

	IS("an address is bound", rdma_bind_addr(id, (struct sockaddr *)&to), 0);
}

/* An identifier that knows the way to a port of this host. */
static struct rdma_cm_id *resolved(struct rdma_event_channel *channel, enum rdma_port_space space, int port)
{
	struct rdma_cm_id *id = new_id(channel, space);
	struct sockaddr_in to = address("127.0.0.1", port);

	IS("the way is looked for", rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	IS("the way is found", status_of(channel, RDMA_CM_EVENT_ADDR_RESOLVED, "address"), 0);
	IS("the route is looked for", rdma_resolve_route(id, 1000), 0);
	IS("the route is found", status_of(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, "route"), 0);
	return id;
}

static struct rdma_cm_id *listening(struct rdma_event_channel *channel, int backlog, int *port)
{
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	bind_to(id, "127.0.0.1", 0);
	*port = ntohs(rdma_get_src_port(id));
	IS("a port is given", *port > 0, 1);
	IS("it is listened at", rdma_listen(id, backlog), 0);
	return id;
}

static void give_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr wish = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	IS("a queue pair is made", rdma_create_qp(id, NULL, &wish), 0);
}

static struct rdma_conn_param words(const char *text)
{
	struct rdma_conn_param parameters = {
		.private_data = text,
		.private_data_len = strlen(text),
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
	};

	return parameters;
}

static void channels(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	IS("a channel", channel != NULL, 1);
	IS("nothing has happened", readable(channel, 0), 0);
	fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	FAILS("nothing is waited for", rdma_get_cm_event(channel, &event), EAGAIN);
	rdma_destroy_event_channel(channel);
}

static void ports(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *one = new_id(channel, RDMA_PS_TCP), *other = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *datagrams = new_id(channel, RDMA_PS_UDP), *shared = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in to, elsewhere = address("203.0.113.7", 0);
	int yes = 1;

	bind_to(one, "127.0.0.1", 0);
	to = address("127.0.0.1", ntohs(rdma_get_src_port(one)));
	FAILS("a port has one owner", rdma_bind_addr(other, (struct sockaddr *)&to), EADDRINUSE);
	IS("each kind has its own", rdma_bind_addr(datagrams, (struct sockaddr *)&to), 0);
	FAILS("twice", rdma_bind_addr(one, (struct sockaddr *)&to), EINVAL);
	FAILS("an address of somebody else", rdma_bind_addr(other, (struct sockaddr *)&elsewhere), EADDRNOTAVAIL);
	IS("a port may be shared",
	   rdma_set_option(shared, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)), 0);
	FAILS("but only by those who all want it", rdma_bind_addr(shared, (struct sockaddr *)&to), EADDRINUSE);
	rdma_destroy_id(one);
	IS("a port comes back", rdma_bind_addr(other, (struct sockaddr *)&to), 0);
	rdma_destroy_id(other);
	rdma_destroy_id(datagrams);
	rdma_destroy_id(shared);
	rdma_destroy_event_channel(channel);
}

static void ways(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel, RDMA_PS_TCP, 9), *lost = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in nowhere = address("203.0.113.7", 9);

	IS("a device", id->verbs != NULL, 1);
	IS("its port", id->port_num, 1);
	IS("one path", id->route.num_paths, 1);
	IS("of full members", ntohs(id->route.path_rec->pkey), 0xffff);
	IS("a source port", rdma_get_src_port(id) != 0, 1);
	IS("the destination's", ntohs(rdma_get_dst_port(id)), 9);
	FAILS("a route twice", rdma_resolve_route(id, 1000), EINVAL);
	IS("no way is no error yet", rdma_resolve_addr(lost, NULL, (struct sockaddr *)&nowhere, 100), 0);
	IS("no way", status_of(channel, RDMA_CM_EVENT_ADDR_ERROR, "no way"), -ENETUNREACH);
	rdma_destroy_id(id);
	rdma_destroy_id(lost);
	rdma_destroy_event_channel(channel);
}

static void nobody(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel, RDMA_PS_TCP, 9);
	struct rdma_conn_param hello = words("hello");
	struct rdma_cm_event *event;

	give_queue_pair(id);
	IS("a connection is asked for", rdma_connect(id, &hello), 0);
	event = next(channel, RDMA_CM_EVENT_REJECTED, "nobody listens");
	IS("invalid service", event->status, 8);
	IS("room for words", event->param.conn.private_data_len, 148);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);

	id = resolved(channel, RDMA_PS_UDP, 9);
	give_queue_pair(id);
	IS("datagrams", rdma_connect(id, &hello), 0);
	IS("nobody takes datagrams", status_of(channel, RDMA_CM_EVENT_UNREACHABLE, "nobody") != 0, 1);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

static void refusals(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel(), *server = rdma_create_event_channel();
	int port;
	struct rdma_cm_id *listener = listening(server, 0, &port), *id = resolved(channel, RDMA_PS_TCP, port);
	struct rdma_conn_param hello = words("hello");
	char much[57] = "";
	struct rdma_cm_event *event;

	give_queue_pair(id);
	hello.private_data = much;
	hello.private_data_len = sizeof(much);
	FAILS("too many words", rdma_connect(id, &hello), EINVAL);
	hello = words("hello");
	IS("a request", rdma_connect(id, &hello), 0);
	event = next(server, RDMA_CM_EVENT_CONNECT_REQUEST, "request");
	IS("its words", memcmp(event->param.conn.private_data, "hello", 6), 0);
	IS("of the listener", event->listen_id == listener, 1);
	IS("no", rdma_reject(event->id, "no", 2), 0);
	rdma_destroy_id(event->id);
	rdma_ack_cm_event(event);
	event = next(channel, RDMA_CM_EVENT_REJECTED, "refusal");
	IS("by the program", event->status, 28);
	IS("its own words", memcmp(event->param.conn.private_data, "no", 3), 0);
	rdma_ack_cm_event(event);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);

	/* A listener that ends refuses what it has not heard of. */
	id = resolved(channel, RDMA_PS_TCP, port);
	give_queue_pair(id);
	IS("another request", rdma_connect(id, &hello), 0);
	IS("it waits", readable(server, MS_LONG), 1);
	rdma_destroy_id(listener);
	IS("nothing waits any longer", readable(server, 0), 0);
	IS("refused", status_of(channel, RDMA_CM_EVENT_REJECTED, "the listener ends"), 28);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(server);
	rdma_destroy_event_channel(channel);
}

static void connections(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel(), *server = rdma_create_event_channel();
	struct rdma_event_channel *other = rdma_create_event_channel();
	int port;
	struct rdma_cm_id *listener = listening(server, 0, &port), *id = resolved(channel, RDMA_PS_TCP, port), *peer;
	struct rdma_conn_param hello = words("hello"), welcome = words("welcome");
	struct rdma_cm_event *event;
	struct ibv_qp_attr attributes;
	struct ibv_qp_init_attr init;
	uint8_t timeout = 15;

	IS("an option", rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	FAILS("an option that is none", rdma_set_option(id, RDMA_OPTION_ID, 99, &timeout, 1), ENOSYS);
	FAILS("an option of another length", rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &port, 4), EINVAL);
	give_queue_pair(id);
	IS("a request", rdma_connect(id, &hello), 0);
	event = next(server, RDMA_CM_EVENT_CONNECT_REQUEST, "request");
	peer = event->id;
	IS("the same port", rdma_get_dst_port(peer) == rdma_get_src_port(id), 1);
	/* What one side may have under way is what the other has room for. */
	IS("resources", event->param.conn.responder_resources, 2);
	IS("depth", event->param.conn.initiator_depth, 3);
	IS("retries", event->param.conn.retry_count, 5);
	IS("retries to who is not ready", event->param.conn.rnr_retry_count, 6);
	rdma_ack_cm_event(event);
	give_queue_pair(peer);
	IS("accepted", rdma_accept(peer, &welcome), 0);
	event = next(channel, RDMA_CM_EVENT_ESTABLISHED, "established at the client");
	IS("a welcome", memcmp(event->param.conn.private_data, "welcome", 8), 0);
	rdma_ack_cm_event(event);
	IS("established", status_of(server, RDMA_CM_EVENT_ESTABLISHED, "established at the server"), 0);
	IS("attributes", ibv_query_qp(id->qp, &attributes, IBV_QP_TIMEOUT | IBV_QP_STATE, &init), 0);
	IS("the timeout", attributes.timeout, timeout);
	IS("ready to send", attributes.qp_state, IBV_QPS_RTS);
	IS("nothing more", readable(server, 0) + readable(channel, 0), 0);

	IS("it moves", rdma_migrate_id(peer, other), 0);
	IS("the end", rdma_disconnect(id), 0);
	IS("ended", status_of(channel, RDMA_CM_EVENT_DISCONNECTED, "ended at the client"), 0);
	IS("ended there", status_of(other, RDMA_CM_EVENT_DISCONNECTED, "ended at the server"), 0);
	IS("ended again", rdma_disconnect(peer), 0);
	IS("no packets are left", status_of(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, "time wait"), 0);
	rdma_destroy_qp(id);
	rdma_destroy_qp(peer);
	/* The server's time wait may be over too: an event that nobody takes does not hold it. */
	rdma_destroy_id(peer);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(server);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(other);
}

static void *destroy(void *id)
{
	return (void *)(long)rdma_destroy_id(id);
}

/* An identifier ends when all of its events have been acknowledged, not before. */
static void acknowledgements(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in to = address("127.0.0.1", 9);
	struct timespec soon;
	struct rdma_cm_event *event;
	pthread_t thread;
	void *result = (void *)-1;

	IS("the way is looked for", rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
	event = next(channel, RDMA_CM_EVENT_ADDR_RESOLVED, "address");
	IS("a thread", pthread_create(&thread, NULL, destroy, id), 0);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec += 1;
	IS("it waits", pthread_timedjoin_np(thread, &result, &soon), ETIMEDOUT);
	IS("the event is done with", rdma_ack_cm_event(event), 0);
	IS("it ends", pthread_join(thread, &result), 0);
	IS("the identifier too", (long)result, 0);
	rdma_destroy_event_channel(channel);
}

/* More ask than may wait: they ask again, and each is heard once. */
static void backlog(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel(), *server = rdma_create_event_channel();
	int port, at;
	struct rdma_cm_id *listener = listening(server, 1, &port), *ids[3];
	struct rdma_conn_param hello = words("hello");
	struct rdma_cm_event *event;

	for (at = 0; at < 3; at++) {
		ids[at] = resolved(channel, RDMA_PS_TCP, port);
		give_queue_pair(ids[at]);
		IS("a request", rdma_connect(ids[at], &hello), 0);
	}
	for (at = 0; at < 3; at++) {
		event = next(server, RDMA_CM_EVENT_CONNECT_REQUEST, "one after the other");
		IS("no", rdma_reject(event->id, NULL, 0), 0);
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
	}
	for (at = 0; at < 3; at++)
		IS("each is told", status_of(channel, RDMA_CM_EVENT_REJECTED, "refusal"), 28);
	for (at = 0; at < 3; at++) {
		rdma_destroy_qp(ids[at]);
		rdma_destroy_id(ids[at]);
	}
	IS("nobody is heard twice", readable(server, MS_SHORT), 0);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(server);
	rdma_destroy_event_channel(channel);
}

/* A child has nothing of its parent's connections, and can have its own: to its parent. */
static void forks(void)
{
	struct rdma_event_channel *server = rdma_create_event_channel();
	int port, status = -1;
	struct rdma_cm_id *listener = listening(server, 0, &port), *peer;
	struct rdma_conn_param welcome = words("welcome");
	struct rdma_cm_event *event;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct rdma_event_channel *own;
		struct rdma_conn_param hello = words("hello");
		struct rdma_cm_id *id;

		FAILS("the parent's channel", rdma_create_id(server, &id, NULL, RDMA_PS_TCP), EINVAL);
		own = rdma_create_event_channel();
		IS("a channel", own != NULL, 1);
		FAILS("still the parent's", rdma_create_id(server, &id, NULL, RDMA_PS_TCP), EINVAL);
		id = resolved(own, RDMA_PS_TCP, port);
		give_queue_pair(id);
		IS("a request", rdma_connect(id, &hello), 0);
		IS("established", status_of(own, RDMA_CM_EVENT_ESTABLISHED, "at the child"), 0);
		/* It ends without a word of its own: its parent hears of it. */
		exit(failures != 0);
	}
	event = next(server, RDMA_CM_EVENT_CONNECT_REQUEST, "the child's request");
	peer = event->id;
	rdma_ack_cm_event(event);
	give_queue_pair(peer);
	IS("accepted", rdma_accept(peer, &welcome), 0);
	IS("established", status_of(server, RDMA_CM_EVENT_ESTABLISHED, "at the parent"), 0);
	IS("the child ends", waitpid(child, &status, 0), child);
	IS("and was content", status, 0);
	IS("its connection too", status_of(server, RDMA_CM_EVENT_DISCONNECTED, "the child ended"), 0);
	rdma_destroy_qp(peer);
	rdma_destroy_id(peer);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(server);
}

int main(void)
{
	channels();
	ports();
	ways();
	nobody();
	refusals();
	connections();
	acknowledgements();
	backlog();
	forks();
	printf("%d wrong\n", failures);
	return failures != 0;
}
