/* What the library promises a C program, and what it answers to mistakes. Each check prints a line; a failed one also
 * says what was found. Everything happens in one process, on the first device. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void say(int good, const char *what, long found)
{
	if (good)
		printf("ok %s\n", what);
	else
		printf("NOT OK %s (found %ld, errno %d)\n", what, found, errno);
}

#define IS(what, expression, wanted)                                           \
	do {                                                                   \
		long found_ = (long)(expression);                              \
		say(found_ == (long)(wanted), what, found_);                   \
	} while (0)
#define FAILS(what, expression, number)                                        \
	do {                                                                   \
		errno = 0;                                                     \
		void *made_ = (expression);                                    \
		say(!made_ && errno == (number), what, (long)made_);           \
	} while (0)
#define MINUS(what, expression, number)                                        \
	do {                                                                   \
		errno = 0;                                                     \
		long found_ = (expression);                                    \
		say(found_ == -1 && errno == (number), what, found_);          \
	} while (0)

enum { LENGTH = 1 << 16 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char *memory;
static union ibv_gid gid;

static void devices(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count), **again = ibv_get_device_list(NULL);
	IS("there is a device", count > 0, 1);
	IS("the list ends with null", list[count] == NULL, 1);
	IS("a device keeps its address", list[0] == again[0], 1);
	ibv_free_device_list(again);
	IS("its name", strncmp(ibv_get_device_name(list[0]), "softfabric", 10), 0);
	IS("its index", ibv_get_device_index(list[0]), 0);
	IS("its guid", ibv_get_device_guid(list[0]) != 0, 1);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	FAILS("no device to open", ibv_open_device(NULL), EINVAL);
	FAILS("contexts cannot be imported", ibv_import_device(0), EOPNOTSUPP);

	struct ibv_port_attr port;
	memset(&port, 0xff, sizeof(port));
	IS("port 1", ibv_query_port(context, 1, &port), 0);
	IS("is active", port.state, IBV_PORT_ACTIVE);
	IS("is Ethernet", port.link_layer, IBV_LINK_LAYER_ETHERNET);
	IS("port 2", ibv_query_port(context, 2, &port), EINVAL);
	IS("port 0", ibv_query_port(context, 0, &port), EINVAL);
	/* The symbol is for programs that have room for 48 bytes. */
	unsigned char old[64];
	memset(old, 0xaa, sizeof(old));
	IS("the old port query", (ibv_query_port)(context, 1, (struct _compat_ibv_port_attr *)old), 0);
	IS("writes 48 bytes", old[47] != 0xaa && old[48] == 0xaa, 1);

	IS("gid 0", ibv_query_gid(context, 1, 0, &gid), 0);
	union ibv_gid other;
	IS("an empty place of the table", ibv_query_gid(context, 1, port.gid_tbl_len - 1, &other), 0);
	IS("is zero", other.global.subnet_prefix | other.global.interface_id, 0);
	MINUS("behind the table", ibv_query_gid(context, 1, port.gid_tbl_len, &other), ENOENT);
	MINUS("a negative place", ibv_query_gid(context, 1, -1, &other), ENOENT);
	struct ibv_gid_entry entry;
	IS("gid 0 at length", ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
	IS("is RoCE v2", entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	IS("has an interface", entry.ndev_ifindex > 0, 1);
	IS("an empty place at length", ibv_query_gid_ex(context, 1, port.gid_tbl_len - 1, &entry, 0), ENODATA);
	IS("no room for the table", ibv_query_gid_table(context, &entry, 0, 0), -EINVAL);
	__be16 key;
	IS("partition 0", ibv_query_pkey(context, 1, 0, &key), 0);
	IS("is the default one", key, 0xffff);
	MINUS("partition 1", ibv_query_pkey(context, 1, 1, &key), EINVAL);
	IS("the default partition's place", ibv_get_pkey_index(context, 1, 0xffff), 0);

	struct ibv_device_attr_ex attributes;
	IS("device attributes", ibv_query_device_ex(context, NULL, &attributes), 0);
	IS("one port", attributes.phys_port_cnt_ex, 1);
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	IS("an unknown question", ibv_query_device_ex(context, &input, &attributes), EINVAL);
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	IS("the clock", ibv_query_rt_values_ex(context, &values), 0);
	IS("runs", values.raw_clock.tv_nsec > 0, 1);
	IS("fork needs nothing", ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

static void regions(void)
{
	pd = ibv_alloc_pd(context);
	memory = aligned_alloc(4096, LENGTH);
	memset(memory, 0, LENGTH);
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	mr = ibv_reg_mr(pd, memory, LENGTH, all);
	IS("a region", mr && mr->addr == memory && mr->length == LENGTH && mr->pd == pd, 1);
	FAILS("remote write without local", ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	FAILS("unknown rights", ibv_reg_mr(pd, memory, LENGTH, 1 << 9), EINVAL);
	FAILS("no length", ibv_reg_mr(pd, memory, 0, 0), EINVAL);
	FAILS("unmapped memory", ibv_reg_mr(pd, (void *)4096, 100, 0), EFAULT);
	FAILS("behind the end of all memory", ibv_reg_mr(pd, memory, SIZE_MAX, 0), EINVAL);
	void *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FAILS("read-only memory to be written", ibv_reg_mr(pd, constant, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	struct ibv_mr *read_only = ibv_reg_mr(pd, constant, 4096, 0);
	IS("read-only memory to be read", read_only && !ibv_dereg_mr(read_only), 1);
	munmap(constant, 4096);
	struct ibv_mr *moved = ibv_reg_mr_iova(pd, memory, LENGTH, 0x10000, all);
	IS("other addresses", moved && !ibv_dereg_mr(moved), 1);
	FAILS("other places in the page", ibv_reg_mr_iova(pd, memory, LENGTH, 0x10001, all), EINVAL);
	IS("a domain in use", ibv_dealloc_pd(pd), EBUSY);

	struct ibv_mr *again = ibv_reg_mr(pd, memory, 4096, 0);
	errno = 0;
	IS("nothing to change", ibv_rereg_mr(again, 0, pd, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	IS("says why", errno, EINVAL);
	IS("more memory", ibv_rereg_mr(again, IBV_REREG_MR_CHANGE_TRANSLATION, pd, memory, LENGTH, 0), 0);
	IS("is shown", again->length, LENGTH);
	ibv_dereg_mr(again);

	struct ibv_mr *implicit = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	IS("the whole address space", implicit && !ibv_dereg_mr(implicit), 1);
	struct ibv_mr *null = ibv_alloc_null_mr(pd);
	IS("a region without memory", null && !ibv_dereg_mr(null), 1);
	struct ibv_sge piece = { (uintptr_t)memory, 4096, mr->lkey };
	IS("advice", ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &piece, 1), 0);
	piece.lkey ^= 0x100000;
	IS("advice for no region", ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &piece, 1), EINVAL);

	int file = memfd_create("buffer", 0);
	IS("a file", ftruncate(file, 8192), 0);
	struct ibv_mr *mapped = ibv_reg_dmabuf_mr(pd, 4096, 4096, 0x4000, file, IBV_ACCESS_LOCAL_WRITE);
	IS("a region in a file", mapped != NULL, 1);
	close(file);
	IS("lasts longer than its descriptor", ibv_dereg_mr(mapped), 0);
	FAILS("no file", ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 12345, 0), EBADF);

	FAILS("an unknown kind of window", ibv_alloc_mw(pd, 3), EINVAL);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	IS("a window", mw && !ibv_dealloc_mw(mw), 1);
	struct ibv_alloc_dm_attr small = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &small);
	IS("memory of the device", ibv_memcpy_to_dm(dm, 0, "device!", 8), 0);
	IS("has bounds", ibv_memcpy_to_dm(dm, 60, "device!", 8), EINVAL);
	struct ibv_mr *device_region = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	IS("a region of it", device_region != NULL, 1);
	IS("keeps it", ibv_free_dm(dm), EBUSY);
	ibv_dereg_mr(device_region);
	IS("and lets it go", ibv_free_dm(dm), 0);
	FAILS("regions cannot be imported", ibv_import_mr(pd, 1), EOPNOTSUPP);
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { 16, 16, 2, 2, 64 },
		.qp_type = type,
		.sq_sig_all = 1,
		.qp_context = &gid,
	};
	return ibv_create_qp(pd, &init);
}

/* From RESET to RTS, connected to itself or to another. */
static int connect_qp(struct ibv_qp *qp, unsigned peer)
{
	struct ibv_qp_attr attributes = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	int error = ibv_modify_qp(qp, &attributes,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error)
		return error;
	struct ibv_qp_attr ready = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } },
	};
	error = ibv_modify_qp(qp, &ready,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error)
		return error;
	struct ibv_qp_attr send = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	return ibv_modify_qp(qp, &send,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static int wait_for(struct ibv_cq *cq, struct ibv_wc *wc)
{
	for (long i = 0; i < 100000000; i++) {
		int count = ibv_poll_cq(cq, 1, wc);
		if (count)
			return count;
	}
	return 0;
}

static void queue_pairs(void)
{
	FAILS("a queue without entries", ibv_create_cq(context, 0, NULL, NULL, 0), EINVAL);
	FAILS("a vector that there is not", ibv_create_cq(context, 1, NULL, NULL, 1000), EINVAL);
	struct ibv_cq *cq = ibv_create_cq(context, 64, &pd, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, NULL, IBV_QPT_RC);
	IS("a queue pair", qp && qp->state == IBV_QPS_RESET && qp->qp_context == &gid, 1);
	IS("is not extended", ibv_qp_to_qp_ex(qp) == NULL, 1);
	FAILS("raw packets", make_qp(cq, NULL, IBV_QPT_RAW_PACKET), EOPNOTSUPP);
	FAILS("no such type", make_qp(cq, NULL, 77), EINVAL);
	IS("a completion queue in use", ibv_destroy_cq(cq), EBUSY);

	struct ibv_sge piece = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_recv_wr receive = { .wr_id = 1, .sg_list = &piece, .num_sge = 1 }, *bad_receive = NULL;
	struct ibv_send_wr send = { .wr_id = 2, .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad = NULL;
	IS("a receive in RESET", ibv_post_recv(qp, &receive, &bad_receive), EINVAL);
	IS("is told back", bad_receive == &receive, 1);
	IS("a send in RESET", ibv_post_send(qp, &send, &bad), EINVAL);
	IS("is told back too", bad == &send, 1);

	struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_RTS };
	IS("a leap", ibv_modify_qp(qp, &attributes, IBV_QP_STATE), EINVAL);
	attributes.qp_state = IBV_QPS_INIT;
	IS("attributes missing", ibv_modify_qp(qp, &attributes, IBV_QP_STATE), EINVAL);
	attributes.port_num = 2;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	IS("port 2", ibv_modify_qp(qp, &attributes, mask), EINVAL);
	attributes.port_num = 1;
	IS("an attribute too many", ibv_modify_qp(qp, &attributes, mask | IBV_QP_QKEY), EINVAL);
	IS("a size that cannot change", ibv_modify_qp(qp, &attributes, mask | IBV_QP_CAP), EINVAL);
	IS("it is still in RESET", qp->state, IBV_QPS_RESET);
	IS("all the way", connect_qp(qp, qp->qp_num), 0);
	IS("is shown", qp->state, IBV_QPS_RTS);

	struct ibv_qp_init_attr init;
	struct ibv_qp_attr found;
	IS("a question", ibv_query_qp(qp, &found, IBV_QP_STATE, &init), 0);
	IS("its state", found.qp_state, IBV_QPS_RTS);
	IS("its peer", found.dest_qp_num, qp->qp_num);
	IS("its MTU", found.path_mtu, IBV_MTU_1024);
	IS("its path", !memcmp(&found.ah_attr.grh.dgid, &gid, 16), 1);
	IS("its size", init.cap.max_send_wr == 16 && init.cap.max_inline_data == 64 && init.sq_sig_all, 1);

	/* The second of three is wrong: the first is posted, the third is not looked at. */
	struct ibv_send_wr third = send, second = send, first = send;
	second.num_sge = 3;
	first.next = &second;
	second.next = &third;
	memcpy(memory, "0123456", 8);
	IS("a receive", ibv_post_recv(qp, &receive, &bad_receive), 0);
	IS("a list with a mistake", ibv_post_send(qp, &first, &bad), EINVAL);
	IS("which is named", bad == &second, 1);
	struct ibv_wc wc;
	IS("what was before it", wait_for(cq, &wc), 1);
	IS("completes", wc.status, IBV_WC_SUCCESS);
	IS("on both ends", wait_for(cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS, 1);
	IS("and no more", ibv_poll_cq(cq, 1, &wc), 0);

	/* Too much for the receive request: the receiver sees a length error, the sender a refusal. */
	struct ibv_sge large = { (uintptr_t)memory, 4096, mr->lkey };
	struct ibv_send_wr long_send = { .wr_id = 3, .sg_list = &large, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_qp *peer = make_qp(cq, NULL, IBV_QPT_RC);
	attributes.qp_state = IBV_QPS_RESET;
	IS("back to RESET", ibv_modify_qp(qp, &attributes, IBV_QP_STATE), 0);
	IS("two connected queue pairs", connect_qp(qp, peer->qp_num) | connect_qp(peer, qp->qp_num), 0);
	ibv_post_recv(peer, &receive, &bad_receive);
	IS("a long message", ibv_post_send(qp, &long_send, &bad), 0);
	int length_error = 0, refused = 0;
	for (int i = 0; i < 2 && wait_for(cq, &wc) == 1; i++) {
		length_error |= wc.wr_id == 1 && wc.status == IBV_WC_LOC_LEN_ERR;
		refused |= wc.wr_id == 3 && wc.status == IBV_WC_REM_INV_REQ_ERR;
	}
	IS("does not fit", length_error, 1);
	IS("and the sender is told", refused, 1);
	IS("the queue pair fails", !ibv_query_qp(qp, &found, IBV_QP_STATE, &init) && found.qp_state == IBV_QPS_ERR, 1);
	IS("a send in ERR", ibv_post_send(qp, &send, &bad), 0);
	IS("is flushed", wait_for(cq, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR, 1);

	union ibv_gid group = { .raw = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3 } };
	IS("multicast of a connection", ibv_attach_mcast(qp, &group, 0), EINVAL);
	struct ibv_ece ece;
	IS("no options of the connection", ibv_query_ece(qp, &ece), EOPNOTSUPP);
	IS("a queue pair ends", ibv_destroy_qp(qp) | ibv_destroy_qp(peer), 0);
	IS("a completion queue ends", ibv_destroy_cq(cq), 0);
}

static volatile int acknowledged;

static void *acknowledge(void *cq)
{
	usleep(100000);
	acknowledged = 1;
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static void events(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_cq *cq = ibv_create_cq(context, 64, &mr, channel, 0), *told;
	void *told_context;
	IS("a channel in use", ibv_destroy_comp_channel(channel), EBUSY);
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	MINUS("no event yet", ibv_get_cq_event(channel, &told, &told_context), EAGAIN);
	struct ibv_qp *qp = make_qp(cq, NULL, IBV_QPT_RC);
	connect_qp(qp, qp->qp_num);
	ibv_req_notify_cq(cq, 0);
	struct ibv_send_wr write = {
		.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { (uintptr_t)memory + 100, mr->rkey }, .num_sge = 0,
	}, *bad;
	ibv_post_send(qp, &write, &bad);
	struct pollfd poller = { channel->fd, POLLIN, 0 };
	IS("the channel is readable", poll(&poller, 1, 5000), 1);
	IS("an event", ibv_get_cq_event(channel, &told, &told_context), 0);
	IS("of the queue", told == cq && told_context == &mr, 1);
	IS("one only", poll(&poller, 1, 0), 0);

	/* Ends only when the event is acknowledged. */
	ibv_destroy_qp(qp);
	pthread_t thread;
	pthread_create(&thread, NULL, acknowledge, cq);
	IS("the queue ends", ibv_destroy_cq(cq), 0);
	IS("not before it was acknowledged", acknowledged, 1);
	pthread_join(thread, NULL);
	IS("the channel ends", ibv_destroy_comp_channel(channel), 0);

	/* An asynchronous event: the queue overruns. */
	cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	qp = make_qp(cq, NULL, IBV_QPT_RC);
	connect_qp(qp, qp->qp_num);
	fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
	struct ibv_async_event event;
	MINUS("no asynchronous event yet", ibv_get_async_event(context, &event), EAGAIN);
	ibv_post_send(qp, &write, &bad);
	ibv_post_send(qp, &write, &bad);
	struct pollfd async = { context->async_fd, POLLIN, 0 };
	IS("the context is readable", poll(&async, 1, 5000), 1);
	IS("an asynchronous event", ibv_get_async_event(context, &event), 0);
	IS("of the overrun queue", event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq, 1);
	ibv_ack_async_event(&event);
	if (!ibv_get_async_event(context, &event)) {
		IS("and of its queue pair", event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == qp, 1);
		ibv_ack_async_event(&event);
	}
	IS("the queue pair ends all the same", ibv_destroy_qp(qp), 0);
	IS("the overrun queue ends", ibv_destroy_cq(cq), 0);
}

static void shared_queues(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_cq *cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(cq, srq, IBV_QPT_RC);
	struct ibv_recv_wr receive = { .wr_id = 9 }, *bad;
	IS("a receive for the pair alone", ibv_post_recv(qp, &receive, &bad), EINVAL);
	for (int i = 0; i < 4; i++)
		IS("a receive for all", ibv_post_srq_recv(srq, &receive, &bad), 0);
	IS("the shared queue is full", ibv_post_srq_recv(srq, &receive, &bad), ENOMEM);
	struct ibv_srq_attr attributes = { .srq_limit = 9 };
	IS("a limit above the depth", ibv_modify_srq(srq, &attributes, IBV_SRQ_LIMIT), EINVAL);
	attributes.srq_limit = 2;
	IS("a limit", ibv_modify_srq(srq, &attributes, IBV_SRQ_LIMIT), 0);
	IS("is shown", !ibv_query_srq(srq, &attributes) && attributes.srq_limit == 2 && attributes.max_wr >= 4, 1);
	unsigned number;
	IS("it has no number", ibv_get_srq_num(srq, &number), EOPNOTSUPP);
	IS("a shared queue in use", ibv_destroy_srq(srq), EBUSY);
	ibv_destroy_qp(qp);
	IS("a shared queue ends", ibv_destroy_srq(srq), 0);
	ibv_destroy_cq(cq);
}

static void addresses(void)
{
	struct ibv_ah_attr attributes = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid } };
	struct ibv_ah *ah = ibv_create_ah(pd, &attributes);
	IS("an address handle", ah != NULL, 1);
	IS("ends", ibv_destroy_ah(ah), 0);
	attributes.is_global = 0;
	FAILS("no global part", ibv_create_ah(pd, &attributes), EINVAL);
	struct ibv_port_attr port;
	ibv_query_port(context, 1, &port);
	attributes.dlid = port.lid;
	ah = ibv_create_ah(pd, &attributes);
	IS("a local identifier", port.lid != 0 && ah && !ibv_destroy_ah(ah), 1);
	attributes.is_global = 1;
	attributes.port_num = 2;
	FAILS("an address on port 2", ibv_create_ah(pd, &attributes), EINVAL);
	attributes.port_num = 1;
	attributes.grh.sgid_index = 200;
	FAILS("no such source", ibv_create_ah(pd, &attributes), EINVAL);
}

/* Builds a write by calls, and reads its completion field by field. */
static void extended(void)
{
	struct ibv_cq_init_attr_ex wish = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &wish);
	IS("an extended queue", cq != NULL, 1);
	wish.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	FAILS("tags", ibv_create_cq_ex(context, &wish), EOPNOTSUPP);
	struct ibv_qp_init_attr_ex init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = { 16, 16, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_TSO,
	};
	FAILS("segmented packets", ibv_create_qp_ex(context, &init), EOPNOTSUPP);
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
	IS("an extended queue pair", qpx != NULL, 1);
	connect_qp(qp, qp->qp_num);
	struct ibv_poll_cq_attr none = { 0 };
	IS("nothing to read", ibv_start_poll(cq, &none), ENOENT);

	char text[] = "built by calls";
	ibv_wr_start(qpx);
	qpx->wr_id = 77;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qpx, mr->rkey, (uintptr_t)memory + 512);
	ibv_wr_set_inline_data(qpx, text, sizeof(text));
	memset(text, 'x', sizeof(text) - 1); /* it was copied */
	IS("a list is posted", ibv_wr_complete(qpx), 0);
	int error = ENOENT;
	for (long i = 0; error == ENOENT && i < 100000000; i++)
		error = ibv_start_poll(cq, &none);
	IS("an entry", error, 0);
	IS("its request", cq->wr_id == 77 && cq->status == IBV_WC_SUCCESS, 1);
	IS("its fields", ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE && ibv_wc_read_qp_num(cq) == qp->qp_num, 1);
	IS("its time", ibv_wc_read_completion_ts(cq) > 0, 1);
	IS("no other", ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	IS("the data", strcmp(memory + 512, "built by calls"), 0);

	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, mr->rkey, (uintptr_t)memory);
	ibv_wr_abort(qpx);
	ibv_wr_start(qpx);
	ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)memory, 8);
	IS("a part before the whole", ibv_wr_complete(qpx), EINVAL);
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, mr->rkey, (uintptr_t)memory);
	char much[65] = { 0 };
	ibv_wr_set_inline_data(qpx, much, sizeof(much));
	IS("too much inline data", ibv_wr_complete(qpx), EINVAL);
	IS("nothing was posted", ibv_start_poll(cq, &none), ENOENT);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(ibv_cq_ex_to_cq(cq));
}

/* Counters are where tools look for them: by the library's own reader, and as files. */
static void counters(void)
{
	char folder[512], told[32] = "", read[32] = "";
	snprintf(folder, sizeof(folder), "%s/ports/1/hw_counters", context->device->ibdev_path);
	IS("a counter", ibv_read_sysfs_file(folder, "resp_remote_access_errors", told, sizeof(told)) > 0, 1);
	IS("that is no counter", ibv_read_sysfs_file(folder, "nothing", read, sizeof(read)), -1);
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/1/hw_counters/resp_remote_access_errors",
		 ibv_get_device_name(context->device));
	FILE *file = fopen(folder, "r");
	IS("as a file", file && fgets(read, sizeof(read), file), 1);
	IS("says the same", atol(told), atol(read));
	if (file)
		fclose(file);
}

static void endings(void)
{
	ibv_dereg_mr(mr);
	struct ibv_td_init_attr nothing = { 0 };
	struct ibv_td *td = ibv_alloc_td(context, &nothing);
	struct ibv_parent_domain_init_attr wish = { .pd = pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(context, &wish);
	IS("a parent domain", parent != NULL, 1);
	IS("its domain is in use", ibv_dealloc_pd(pd), EBUSY);
	IS("its thread domain too", ibv_dealloc_td(td), EBUSY);
	IS("it ends", ibv_dealloc_pd(parent), 0);
	IS("then its thread domain", ibv_dealloc_td(td), 0);
	IS("then its domain", ibv_dealloc_pd(pd), 0);

	/* What a program leaves behind goes with the context. */
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	make_qp(cq, NULL, IBV_QPT_UD);
	IS("a context ends with everything in it", ibv_close_device(context), 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	devices();
	regions();
	queue_pairs();
	events();
	shared_queues();
	addresses();
	extended();
	counters();
	endings();
	puts("done");
	return 0;
}
