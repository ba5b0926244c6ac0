// SPDX-License-Identifier: GPL-2.0
/*
 * Receive queues: NAPI contexts that process packets and serve QPs, with moderation.
 *
 * All WEFT_MAX_RX_QUEUES queues of a link exist from start to stop; how many of them new work is
 * given to is only a number, so that a resize takes nothing away from under anybody: what an unused
 * queue still holds is polled to its end.
 *
 * Who sets NAPI_STATE_SCHED (napi_schedule_prep() says so) owns the queue's csd and irq_work until
 * the poll has run, so neither can be in flight twice.
 *
 * The todo lists are the poll's alone, that is, of who owns NAPI_STATE_SCHED and is about to poll:
 * polling_cpu says where, and what that CPU itself queues with BH off goes straight there.
 *
 * A QP is handed from schedule to poll by the atomic qp->service_queued: whoever turns it true may
 * put the QP on one list; the poll turns it false after it took the QP off and before it serves it,
 * so a request that comes during the service is another service. weft_qp_unschedule() ends as the
 * owner of the flag and never gives it back.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/slab.h>

#include "burst.h"
#include "qp.h"
#include "rx.h"

/* QPs that a poll serves even when packets have used its budget up. */
enum { WEFT_RXQ_MIN_SERVICES = 4 };

/*
 * Runs where it polls: in hardirq, or on 6.x's idle path, which looks for pending softirqs
 * afterwards.
 */
static void weft_rxq_run(void *info)
{
	struct weft_rxq *rxq = info;

	__napi_schedule(&rxq->napi);
}

static void weft_rxq_irq_work(struct irq_work *work)
{
	weft_rxq_run(container_of(work, struct weft_rxq, irq_work));
}

static void weft_rxq_run_here(struct weft_rxq *rxq)
{
	if (in_interrupt()) {
		__napi_schedule(&rxq->napi);
	} else if (!irqs_disabled()) {
		local_bh_disable();
		__napi_schedule(&rxq->napi);
		local_bh_enable();
	} else {
		/*
		 * Nothing would look at a softirq that was raised here before the next interrupt.
		 */
		irq_work_queue(&rxq->irq_work);
	}
}

/* What runs on this CPU. BH off. */
struct weft_rx_here {
	bool doorbell;             /* one is under way */
	struct weft_rxq *bell_rxq; /* that it will poll: its NAPI_STATE_SCHED is ours */
	struct weft_rxq *polled;   /* whose poll is under way */
};

static DEFINE_PER_CPU(struct weft_rx_here, weft_rx_here);

/* The doorbell under way takes the poll over. From here on the queue's todo lists are ours. */
static void weft_doorbell_take(struct weft_rx_here *here, struct weft_rxq *rxq)
{
	here->bell_rxq = rxq;
	WRITE_ONCE(rxq->polling_cpu, smp_processor_id());
}

/* Can the doorbell under way take the queue's poll over? Then it does. */
static bool weft_doorbell_takes(struct weft_rxq *rxq)
{
	struct weft_rx_here *here = this_cpu_ptr(&weft_rx_here);

	if (!here->doorbell || here->bell_rxq || in_hardirq() || in_serving_softirq())
		return false;
	weft_doorbell_take(here, rxq);
	return true;
}

/* Make the queue poll. Any context. */
static void weft_rxq_kick(struct weft_rxq *rxq)
{
	int cpu = READ_ONCE(rxq->cpu);
	int here = get_cpu();

	/* Called by the poll itself, which looks again before it ends. */
	if (READ_ONCE(rxq->polling_cpu) == here && !in_hardirq())
		goto out;
	if (!napi_schedule_prep(&rxq->napi))
		goto out; /* it polls already and will poll once more */
	if (here != cpu && !smp_call_function_single_async(cpu, &rxq->csd))
		goto out;
	/* The queue's CPU is this one, or is offline. */
	if (!weft_doorbell_takes(rxq))
		weft_rxq_run_here(rxq);
out:
	put_cpu();
}

static enum hrtimer_restart weft_rxq_timer(struct hrtimer *timer)
{
	struct weft_rxq *rxq = container_of(timer, struct weft_rxq, timer);

	WRITE_ONCE(rxq->timer_fired, true);
	weft_count(rxq->dev, rx_moderated);
	weft_rxq_kick(rxq);
	return HRTIMER_NORESTART;
}

/*
 * skbs.lock is held and @num more packets are in. True: fire now. Else a timer or a later packet
 * will.
 */
static bool weft_rxq_moderate(struct weft_rxq *rxq, u32 num)
{
	const struct weft_dev_cfg *cfg = &rxq->dev->cfg;
	struct weft_moderation mod = {
		.usecs = READ_ONCE(cfg->rx_mod.usecs),
		.frames = READ_ONCE(cfg->rx_mod.frames),
	};
	u32 pending = skb_queue_len(&rxq->skbs) + rxq->num_bursts;
	u64 delay, now;

	/* The poll under way takes it; interrupts, so to speak, are off. */
	if (rxq->polling_cpu == smp_processor_id() || (mod.frames && pending >= mod.frames))
		return true;
	now = ktime_get_ns();
	if (pending == num)
		rxq->first_ns = now;
	delay = weft_moderation_delay(&mod, pending, now - rxq->first_ns);
	if (!delay)
		return true;
	/*
	 * The first packet of a batch also takes over a timer that the batch before it left behind.
	 */
	if (delay != WEFT_MODERATION_NEVER && (pending == num || !hrtimer_is_queued(&rxq->timer)))
		hrtimer_start(&rxq->timer, ns_to_ktime(delay), HRTIMER_MODE_REL);
	return false;
}

/* Have @pending packets been enough? Then @num more are dropped. */
static bool weft_rxq_full(struct weft_rxq *rxq, u32 pending, u32 num)
{
	if (likely(pending < WEFT_RXQ_LIMIT))
		return false;
	rxq->stats.drops += num;
	weft_count_add(rxq->dev, rx_drop_queue_full, num);
	return true;
}

void weft_rx_enqueue(struct weft_dev *dev, struct sk_buff *skb, u32 hash)
{
	unsigned int num = READ_ONCE(dev->num_rxq);
	struct weft_rxq *rxq = &dev->rxq[weft_rss_queue(dev->indir, hash) % num];
	struct sk_buff *drop = NULL;
	bool fire = true;

	skb->dev = NULL; /* not held: the netdev may go while the packet waits */

	spin_lock(&rxq->skbs.lock);
	if (weft_rxq_full(rxq, skb_queue_len(&rxq->skbs) + rxq->num_bursts, 1)) {
		drop = skb;
	} else {
		__skb_queue_tail(&rxq->skbs, skb);
		fire = weft_rxq_moderate(rxq, 1);
	}
	spin_unlock(&rxq->skbs.lock);
	kfree_skb(drop);
	if (fire)
		weft_rxq_kick(rxq);
}

static void weft_rxq_queue_burst(struct weft_rxq *rxq, struct weft_burst *burst)
{
	struct weft_burst *drop = NULL;
	bool fire = true;

	spin_lock(&rxq->skbs.lock);
	if (weft_rxq_full(rxq, skb_queue_len(&rxq->skbs) + rxq->num_bursts, burst->num)) {
		drop = burst;
	} else {
		weft_burst_list_add(&rxq->bursts, burst);
		WRITE_ONCE(rxq->num_bursts, rxq->num_bursts + burst->num);
		fire = weft_rxq_moderate(rxq, burst->num);
	}
	spin_unlock(&rxq->skbs.lock);
	if (drop)
		weft_burst_free(drop);
	if (fire)
		weft_rxq_kick(rxq);
}

/*
 * Is the queue's poll under way on this CPU, or what the doorbell under way will end with? Not
 * where moderation would have the packets wait.
 */
static bool weft_rxq_is_polled_here(struct weft_rxq *rxq, int cpu, u32 num)
{
	struct weft_rx_here *here;
	u32 frames;

	if (rxq->polling_cpu == cpu)
		return true;
	here = this_cpu_ptr(&weft_rx_here);
	frames = READ_ONCE(rxq->dev->cfg.rx_mod.frames);
	if (!here->doorbell || here->bell_rxq || READ_ONCE(rxq->cpu) != cpu || !frames ||
	    frames > num || !napi_schedule_prep(&rxq->napi))
		return false;
	weft_doorbell_take(here, rxq);
	return true;
}

void weft_rx_enqueue_burst(struct weft_dev *dev, struct weft_burst *burst)
{
	int cpu = smp_processor_id();
	struct weft_rxq *rxq = &dev->rxq[cpu % READ_ONCE(dev->num_rxq)];

	/* What this CPU has queued before comes first. */
	if (READ_ONCE(rxq->num_bursts) || !weft_rxq_is_polled_here(rxq, cpu, burst->num))
		return weft_rxq_queue_burst(rxq, burst);
	if (weft_rxq_full(rxq, rxq->num_todo, burst->num))
		return weft_burst_free(burst);
	weft_burst_list_add(&rxq->todo_bursts, burst);
	rxq->num_todo += burst->num;
}

bool weft_rx_passes_ack(struct weft_dev *dev)
{
	struct weft_rxq *rxq = &dev->rxq[smp_processor_id() % READ_ONCE(dev->num_rxq)];

	return rxq == this_cpu_read(weft_rx_here.polled) && !rxq->todo_bursts.first &&
	       !READ_ONCE(rxq->num_bursts);
}

void weft_rx_pass_ack(struct weft_dev *dev, const struct weft_av *av, const struct weft_pkt *pkt)
{
	struct weft_rxq *rxq = this_cpu_read(weft_rx_here.polled);
	u32 bytes = weft_burst_packet_bytes(pkt->hdr_len, 0);

	rxq->stats.packets++;
	rxq->stats.bytes += bytes;
	weft_receive_ack(dev, av, pkt, bytes);
}

void weft_rx_inline(struct weft_dev *dev, struct sk_buff *skb)
{
	skb->dev = NULL;
	weft_count(dev, rx_inline);
	weft_receive(dev, skb);
}

/* Take what other CPUs and the stack have queued. */
static void weft_rxq_take(struct weft_rxq *rxq)
{
	if (skb_queue_empty_lockless(&rxq->skbs) && !READ_ONCE(rxq->num_bursts))
		return;
	spin_lock(&rxq->skbs.lock);
	skb_queue_splice_tail_init(&rxq->skbs, &rxq->todo);
	weft_burst_list_splice(&rxq->todo_bursts, &rxq->bursts);
	rxq->num_todo += rxq->num_bursts;
	WRITE_ONCE(rxq->num_bursts, 0);
	spin_unlock(&rxq->skbs.lock);
}

static bool weft_rxq_has_todo(const struct weft_rxq *rxq)
{
	return rxq->todo_bursts.first || !skb_queue_empty(&rxq->todo);
}

static int weft_rxq_receive_burst(struct weft_rxq *rxq)
{
	struct weft_burst *burst = weft_burst_list_pop(&rxq->todo_bursts);
	int num = burst->num;

	rxq->num_todo -= num;
	rxq->stats.packets += num;
	rxq->stats.bytes += burst->bytes;
	weft_receive_burst(rxq->dev, burst);
	return num;
}

static void weft_rxq_receive_skb(struct weft_rxq *rxq)
{
	struct sk_buff *skb = __skb_dequeue(&rxq->todo);

	rxq->stats.packets++;
	rxq->stats.bytes += skb->len;
	weft_receive(rxq->dev, skb);
}

/*
 * skbs and bursts in turn: neither can keep the other waiting. The work done may be more than
 * @budget by all but one of a burst's packets.
 */
static int weft_rxq_receive(struct weft_rxq *rxq, int budget)
{
	int work = 0;

	weft_rxq_take(rxq);
	while (work < budget && weft_rxq_has_todo(rxq)) {
		if (rxq->todo_bursts.first)
			work += weft_rxq_receive_burst(rxq);
		if (!skb_queue_empty(&rxq->todo)) {
			weft_rxq_receive_skb(rxq);
			work++;
		}
	}
	return work;
}

/* The queue that serves the QP. */
static struct weft_rxq *weft_qp_rxq(const struct weft_qp *qp)
{
	return &qp->dev->rxq[READ_ONCE(qp->service_queue) % READ_ONCE(qp->dev->num_rxq)];
}

/* Answers that a batch of packets has made due; under the RCU section that the packets had. */
static void weft_rxq_answer(struct weft_rxq *rxq)
{
	struct weft_qp *qp;

	while ((qp = rxq->due)) {
		rxq->due = qp->due_next;
		/* A full barrier: what was done before the flag was found true is seen below. */
		xchg(&qp->due, false);
		if (weft_responder_run(qp, WEFT_SERVICE_BUDGET))
			weft_qp_schedule(qp);
	}
}

void weft_qp_answer(struct weft_qp *qp)
{
	struct weft_rxq *rxq = this_cpu_read(weft_rx_here.polled);

	if (!rxq || (rxq != weft_qp_rxq(qp) && !weft_qp_served_here(qp)))
		return weft_qp_schedule(qp);
	/* A full barrier: where the flag is true already, that poll sees our answer. */
	if (xchg(&qp->due, true))
		return;
	qp->due_next = rxq->due;
	rxq->due = qp;
}

static void weft_rxq_add_qp(struct weft_rxq *rxq, struct weft_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&rxq->qp_lock, flags);
	list_add_tail(&qp->service_node, &rxq->qps);
	WRITE_ONCE(rxq->num_qps, rxq->num_qps + 1);
	spin_unlock_irqrestore(&rxq->qp_lock, flags);
}

/*
 * Take the first QP, or NULL. rxq->serving keeps weft_qp_unschedule() waiting before the QP's flag
 * is given back.
 */
static struct weft_qp *weft_rxq_take_qp(struct weft_rxq *rxq)
{
	struct weft_qp *qp;

	spin_lock_irq(&rxq->qp_lock);
	qp = list_first_entry_or_null(&rxq->qps, struct weft_qp, service_node);
	if (qp) {
		list_del(&qp->service_node);
		WRITE_ONCE(rxq->num_qps, rxq->num_qps - 1);
		WRITE_ONCE(rxq->serving, qp);
	}
	spin_unlock_irq(&rxq->qp_lock);
	return qp;
}

/*
 * Serve the QPs that wait now, each once, and no more than @budget. The exchange is a full barrier:
 * what a scheduler did before it found the flag still true is seen by the service.
 */
static int weft_rxq_serve(struct weft_rxq *rxq, int budget)
{
	int num = min_t(u32, READ_ONCE(rxq->num_qps), budget);
	struct weft_qp *qp;
	bool again;
	int work;

	for (work = 0; work < num; work++) {
		qp = weft_rxq_take_qp(rxq);
		if (!qp)
			break;
		xchg(&qp->service_queued, false);
		again = !READ_ONCE(qp->service_dead) && weft_qp_service(qp);
		if (again && !xchg(&qp->service_queued, true))
			weft_rxq_add_qp(rxq, qp);
		/* Pairs with the acquire in weft_qp_unschedule(): all of the service is done. */
		smp_store_release(&rxq->serving, NULL);
		rxq->stats.qp_services++;
	}
	return work;
}

static bool weft_rxq_has_work(struct weft_rxq *rxq)
{
	return weft_rxq_has_todo(rxq) || READ_ONCE(rxq->num_qps) || READ_ONCE(rxq->num_bursts) ||
	       !skb_queue_empty_lockless(&rxq->skbs);
}

static int weft_rxq_work(struct weft_rxq *rxq, int budget)
{
	int work = 0;

	do {
		rcu_read_lock();
		work += weft_rxq_receive(rxq, budget - work);
		weft_rxq_answer(rxq);
		if (READ_ONCE(rxq->num_qps))
			work += weft_rxq_serve(rxq, max_t(int, budget - work,
							  WEFT_RXQ_MIN_SERVICES));
		rcu_read_unlock();
	} while (work < budget && weft_rxq_has_work(rxq));
	return work;
}

/*
 * Packets and QPs in turn, until there are none or the budget is used up. What comes by hardirq or
 * from another CPU behind the last look finds NAPI_STATE_SCHED set and has the poll called again.
 */
static int weft_rxq_poll(struct napi_struct *napi, int budget)
{
	struct weft_rxq *rxq = container_of(napi, struct weft_rxq, napi);
	int work;

	rxq->stats.polls++;
	if (READ_ONCE(rxq->timer_fired)) {
		WRITE_ONCE(rxq->timer_fired, false);
		rxq->stats.moderated++;
	}

	WRITE_ONCE(rxq->polling_cpu, smp_processor_id());
	this_cpu_write(weft_rx_here.polled, rxq);
	work = weft_rxq_work(rxq, budget);
	this_cpu_write(weft_rx_here.polled, NULL);
	WRITE_ONCE(rxq->polling_cpu, -1);

	if (work >= budget)
		return budget;
	napi_complete_done(napi, work);
	return work;
}

bool weft_rx_doorbell_begin(struct weft_qp *qp)
{
	this_cpu_write(weft_rx_here.doorbell, true);
	return weft_qp_served_here(qp);
}

/* As busy polling does it: the poll runs here and completes the NAPI, or leaves it to softirq. */
void weft_rx_doorbell_end(void)
{
	struct weft_rx_here *here = this_cpu_ptr(&weft_rx_here);
	struct weft_rxq *rxq = here->bell_rxq;

	here->doorbell = false;
	here->bell_rxq = NULL;
	if (rxq && weft_rxq_poll(&rxq->napi, rxq->napi.weight) == rxq->napi.weight)
		__napi_schedule(&rxq->napi);
}

bool weft_qp_served_here(struct weft_qp *qp)
{
	struct weft_dev *dev = qp->dev;
	unsigned int num = READ_ONCE(dev->num_rxq);
	int cpu = raw_smp_processor_id();

	if (READ_ONCE(weft_qp_rxq(qp)->cpu) == cpu)
		return true;
	if (weft_psn_before(READ_ONCE(qp->req.una), READ_ONCE(qp->req.asked)) ||
	    atomic_read(&qp->flow->inflight) || READ_ONCE(dev->rxq[cpu % num].cpu) != cpu)
		return false;
	WRITE_ONCE(qp->service_queue, cpu % num);
	return true;
}

void weft_qp_schedule(struct weft_qp *qp)
{
	struct weft_rxq *rxq;

	if (READ_ONCE(qp->service_dead) || xchg(&qp->service_queued, true))
		return;
	weft_qp_served_here(qp);
	rxq = weft_qp_rxq(qp);
	weft_rxq_add_qp(rxq, qp);
	weft_rxq_kick(rxq);
}

static bool weft_qp_is_served(const struct weft_qp *qp)
{
	unsigned int i;

	for (i = 0; i < WEFT_MAX_RX_QUEUES; i++)
		/* Pairs with the release in weft_rxq_serve(). */
		if (smp_load_acquire(&qp->dev->rxq[i].serving) == qp)
			return true;
	return false;
}

void weft_qp_unschedule(struct weft_qp *qp)
{
	might_sleep();
	WRITE_ONCE(qp->service_dead, true);
	while (xchg(&qp->service_queued, true))
		usleep_range(20, 200);
	while (weft_qp_is_served(qp))
		usleep_range(20, 200);
}

/* Queue i polls on the i-th online CPU, round robin. */
static void weft_rx_spread(struct weft_dev *dev)
{
	unsigned int i = 0;
	int cpu;

	while (i < WEFT_MAX_RX_QUEUES) {
		for_each_online_cpu(cpu) {
			if (i == WEFT_MAX_RX_QUEUES)
				break;
			WRITE_ONCE(dev->rxq[i++].cpu, cpu);
		}
	}
}

static void weft_rxq_init(struct weft_dev *dev, unsigned int index)
{
	struct weft_rxq *rxq = &dev->rxq[index];

	rxq->dev = dev;
	rxq->index = index;
	rxq->polling_cpu = -1;
	skb_queue_head_init(&rxq->skbs);
	__skb_queue_head_init(&rxq->todo);
	spin_lock_init(&rxq->qp_lock);
	INIT_LIST_HEAD(&rxq->qps);
	hrtimer_setup(&rxq->timer, weft_rxq_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	init_irq_work(&rxq->irq_work, weft_rxq_irq_work);
	INIT_CSD(&rxq->csd, weft_rxq_run, rxq);
	netif_napi_add(dev->napi_dev, &rxq->napi, weft_rxq_poll);
	napi_enable(&rxq->napi);
}

/*
 * No producer is left. A poll that is under way, or still to be started by csd or irq_work, is
 * waited for.
 */
static void weft_rxq_uninit(struct weft_rxq *rxq)
{
	struct weft_burst *burst;

	hrtimer_cancel(&rxq->timer);
	napi_disable(&rxq->napi);
	irq_work_sync(&rxq->irq_work);
	netif_napi_del(&rxq->napi);
	__skb_queue_purge(&rxq->skbs);
	__skb_queue_purge(&rxq->todo);
	local_bh_disable();
	weft_burst_list_splice(&rxq->todo_bursts, &rxq->bursts);
	while ((burst = weft_burst_list_pop(&rxq->todo_bursts)))
		weft_burst_free(burst);
	local_bh_enable();
	WARN_ON_ONCE(!list_empty(&rxq->qps));
}

int weft_rx_resize(struct weft_dev *dev, unsigned int num)
{
	if (!num || num > WEFT_MAX_RX_QUEUES)
		return -EINVAL;
	cpus_read_lock();
	weft_rx_spread(dev);
	cpus_read_unlock();
	weft_rss_indir_default(dev->indir, num);
	WRITE_ONCE(dev->num_rxq, num);
	return 0;
}

int weft_rx_start(struct weft_dev *dev, unsigned int num)
{
	unsigned int i;
	int ret;

	dev->rxq = kvcalloc(WEFT_MAX_RX_QUEUES, sizeof(*dev->rxq), GFP_KERNEL);
	if (!dev->rxq)
		return -ENOMEM;
	dev->napi_dev = alloc_netdev_dummy(0);
	if (!dev->napi_dev) {
		ret = -ENOMEM;
		goto free_rxq;
	}
	ret = weft_rx_resize(dev, num);
	if (ret)
		goto free_napi_dev;
	for (i = 0; i < WEFT_MAX_RX_QUEUES; i++)
		weft_rxq_init(dev, i);
	return 0;

free_napi_dev:
	free_netdev(dev->napi_dev);
	dev->napi_dev = NULL;
free_rxq:
	kvfree(dev->rxq);
	dev->rxq = NULL;
	return ret;
}

void weft_rx_stop(struct weft_dev *dev)
{
	unsigned int i;

	if (!dev->rxq)
		return;
	for (i = 0; i < WEFT_MAX_RX_QUEUES; i++)
		weft_rxq_uninit(&dev->rxq[i]);
	synchronize_net(); /* netif_napi_del() leaves a grace period to its caller's free */
	free_netdev(dev->napi_dev);
	kvfree(dev->rxq);
	dev->napi_dev = NULL;
	dev->rxq = NULL;
}
