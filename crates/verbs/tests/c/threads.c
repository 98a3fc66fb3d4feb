/* Threads that make, use and end objects of one context all at once: nothing is lost, nothing hangs. */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 1000, WRITES = 16, LENGTH = 4096 };

static struct ibv_context *context;
static union ibv_gid gid;
static int failures;

#define NEED(expression)                                                       \
	do {                                                                   \
		if (!(expression)) {                                           \
			printf("line %d: %s\n", __LINE__, #expression);        \
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);    \
			return NULL;                                           \
		}                                                              \
	} while (0)

static int ready(struct ibv_qp *qp, unsigned peer)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr receive = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 64 } },
	};
	struct ibv_qp_attr send = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1,
	};
	return ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	       ibv_modify_qp(qp, &receive,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) ||
	       ibv_modify_qp(qp, &send,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static void *work(void *number)
{
	char *memory = aligned_alloc(4096, 2 * LENGTH);
	memset(memory, (int)(intptr_t)number, LENGTH);
	for (int round = 0; round < ROUNDS; round++) {
		memset(memory + LENGTH, 0xff, LENGTH);
		struct ibv_pd *pd = ibv_alloc_pd(context);
		struct ibv_mr *mr = ibv_reg_mr(pd, memory, 2 * LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
		struct ibv_cq *cq = ibv_create_cq(context, 2 * WRITES, number, channel, 0);
		NEED(pd && mr && channel && cq);
		struct ibv_qp_init_attr init = {
			.send_cq = cq, .recv_cq = cq, .cap = { WRITES, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		};
		struct ibv_qp *one = ibv_create_qp(pd, &init), *two = ibv_create_qp(pd, &init);
		NEED(one && two);
		NEED(!ready(one, two->qp_num) && !ready(two, one->qp_num));
		NEED(!ibv_req_notify_cq(cq, 0));
		struct ibv_sge piece = { (uintptr_t)memory, LENGTH / WRITES, mr->lkey };
		struct ibv_send_wr write = {
			.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = mr->rkey,
		}, *bad;
		for (int i = 0; i < WRITES; i++) {
			write.wr_id = i;
			write.wr.rdma.remote_addr = (uintptr_t)memory + LENGTH + i * (LENGTH / WRITES);
			NEED(!ibv_post_send(i % 2 ? one : two, &write, &bad));
		}
		struct ibv_cq *told;
		void *told_context;
		NEED(!ibv_get_cq_event(channel, &told, &told_context));
		NEED(told == cq && told_context == number);
		ibv_ack_cq_events(cq, 1);
		struct ibv_wc wc[4];
		for (int done = 0; done < WRITES;) {
			int count = ibv_poll_cq(cq, 4, wc);
			NEED(count >= 0);
			for (int i = 0; i < count; i++)
				NEED(wc[i].status == IBV_WC_SUCCESS);
			done += count;
		}
		NEED(!memcmp(memory, memory + LENGTH, LENGTH));
		NEED(!ibv_destroy_qp(one) && !ibv_destroy_qp(two) && !ibv_destroy_cq(cq));
		NEED(!ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	}
	free(memory);
	return NULL;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	ibv_query_gid(context, 1, 0, &gid);
	pthread_t threads[THREADS];
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (ibv_close_device(context))
		failures++;
	puts(failures ? "failed" : "done");
	return failures != 0;
}
