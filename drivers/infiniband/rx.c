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
 * A QP is handed from schedule to poll by the atomic qp->service_queued: whoever turns it true may
 * put the QP on one list; the poll turns it false after it took the QP off and before it serves it,
 * so a request that comes during the service is another service. weft_qp_unschedule() ends as the
 * owner of the flag and never gives it back.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/slab.h>

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

/* Make the queue poll. Any context. */
static void weft_rxq_kick(struct weft_rxq *rxq)
{
	int cpu = READ_ONCE(rxq->cpu);

	if (!napi_schedule_prep(&rxq->napi))
		return; /* it polls already and will poll once more */
	if (get_cpu() == cpu || smp_call_function_single_async(cpu, &rxq->csd))
		weft_rxq_run_here(rxq); /* the queue's CPU is this one, or is offline */
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

/* skbs.lock is held and the packet is in. True: fire now. Else a timer or a later packet will. */
static bool weft_rxq_moderate(struct weft_rxq *rxq, u64 now)
{
	const struct weft_dev_cfg *cfg = &rxq->dev->cfg;
	struct weft_moderation mod = {
		.usecs = READ_ONCE(cfg->rx_mod.usecs),
		.frames = READ_ONCE(cfg->rx_mod.frames),
	};
	u32 pending = skb_queue_len(&rxq->skbs);
	u64 delay;

	if (pending == 1)
		rxq->first_ns = now;
	delay = weft_moderation_delay(&mod, pending, now - rxq->first_ns);
	if (!delay)
		return true;
	/*
	 * The first packet of a batch also takes over a timer that the batch before it left behind.
	 */
	if (delay != WEFT_MODERATION_NEVER && (pending == 1 || !hrtimer_is_queued(&rxq->timer)))
		hrtimer_start(&rxq->timer, ns_to_ktime(delay), HRTIMER_MODE_REL);
	return false;
}

static void weft_rxq_drop(struct weft_rxq *rxq, struct sk_buff *skb)
{
	rxq->stats.drops++;
	weft_count(rxq->dev, rx_drop_queue_full);
	kfree_skb(skb);
}

static void weft_rxq_enqueue(struct weft_rxq *rxq, struct sk_buff *skb)
{
	u64 now = ktime_get_ns();
	bool fire;

	skb->dev = NULL; /* not held: the netdev may go while the packet waits */

	spin_lock(&rxq->skbs.lock);
	if (unlikely(skb_queue_len(&rxq->skbs) >= WEFT_RXQ_LIMIT)) {
		weft_rxq_drop(rxq, skb);
		fire = true;
	} else {
		__skb_queue_tail(&rxq->skbs, skb);
		fire = weft_rxq_moderate(rxq, now);
	}
	spin_unlock(&rxq->skbs.lock);
	if (fire)
		weft_rxq_kick(rxq);
}

void weft_rx_enqueue(struct weft_dev *dev, struct sk_buff *skb, u32 hash)
{
	unsigned int num = READ_ONCE(dev->num_rxq);

	weft_rxq_enqueue(&dev->rxq[weft_rss_queue(dev->indir, hash) % num], skb);
}

void weft_rx_enqueue_here(struct weft_dev *dev, struct sk_buff *skb)
{
	weft_rxq_enqueue(&dev->rxq[smp_processor_id() % READ_ONCE(dev->num_rxq)], skb);
}

void weft_rx_inline(struct weft_dev *dev, struct sk_buff *skb)
{
	skb->dev = NULL;
	weft_count(dev, rx_inline);
	weft_receive(dev, skb);
}

static struct sk_buff *weft_rxq_next(struct weft_rxq *rxq)
{
	struct sk_buff *skb = __skb_dequeue(&rxq->todo);

	if (skb || skb_queue_empty_lockless(&rxq->skbs))
		return skb;
	spin_lock(&rxq->skbs.lock);
	skb_queue_splice_tail_init(&rxq->skbs, &rxq->todo);
	spin_unlock(&rxq->skbs.lock);
	return __skb_dequeue(&rxq->todo);
}

static int weft_rxq_receive(struct weft_rxq *rxq, int budget)
{
	struct sk_buff *skb;
	int work = 0;

	while (work < budget && (skb = weft_rxq_next(rxq))) {
		rxq->stats.packets++;
		rxq->stats.bytes += skb->len;
		weft_receive(rxq->dev, skb);
		work++;
	}
	return work;
}

static void weft_rxq_add_qp(struct weft_rxq *rxq, struct weft_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&rxq->qp_lock, flags);
	list_add_tail(&qp->service_node, &rxq->qps);
	spin_unlock_irqrestore(&rxq->qp_lock, flags);
}

static struct weft_qp *weft_rxq_last_qp(struct weft_rxq *rxq)
{
	struct weft_qp *qp = NULL;

	spin_lock_irq(&rxq->qp_lock);
	if (!list_empty(&rxq->qps))
		qp = list_last_entry(&rxq->qps, struct weft_qp, service_node);
	spin_unlock_irq(&rxq->qp_lock);
	return qp;
}

/*
 * Take the first QP; the list is not empty, for only the poll takes. rxq->serving keeps
 * weft_qp_unschedule() waiting before the QP's flag is given back.
 */
static struct weft_qp *weft_rxq_take_qp(struct weft_rxq *rxq)
{
	struct weft_qp *qp;

	spin_lock_irq(&rxq->qp_lock);
	qp = list_first_entry(&rxq->qps, struct weft_qp, service_node);
	list_del(&qp->service_node);
	WRITE_ONCE(rxq->serving, qp);
	spin_unlock_irq(&rxq->qp_lock);
	return qp;
}

/*
 * Serve the QPs that wait now, each once, and no more than @budget. The exchange is a full barrier:
 * what a scheduler did before it found the flag still true is seen by the service.
 */
static int weft_rxq_serve(struct weft_rxq *rxq, int budget)
{
	struct weft_qp *last = weft_rxq_last_qp(rxq);
	struct weft_qp *qp = NULL;
	bool again;
	int work;

	for (work = 0; work < budget && last && qp != last; work++) {
		qp = weft_rxq_take_qp(rxq);
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

static int weft_rxq_poll(struct napi_struct *napi, int budget)
{
	struct weft_rxq *rxq = container_of(napi, struct weft_rxq, napi);
	int work;

	rxq->stats.polls++;
	if (READ_ONCE(rxq->timer_fired)) {
		WRITE_ONCE(rxq->timer_fired, false);
		rxq->stats.moderated++;
	}

	rcu_read_lock();
	work = weft_rxq_receive(rxq, budget);
	work += weft_rxq_serve(rxq, max_t(int, budget - work, WEFT_RXQ_MIN_SERVICES));
	rcu_read_unlock();

	/* Below budget todo is empty; who adds to skbs or qps from now on kicks. */
	if (work >= budget || !list_empty_careful(&rxq->qps))
		return budget;
	napi_complete_done(napi, work);
	return work;
}

bool weft_qp_served_here(struct weft_qp *qp)
{
	struct weft_dev *dev = qp->dev;
	unsigned int num = READ_ONCE(dev->num_rxq);
	int cpu = raw_smp_processor_id();

	if (READ_ONCE(dev->rxq[READ_ONCE(qp->service_queue) % num].cpu) == cpu)
		return true;
	if (READ_ONCE(qp->req.una) != READ_ONCE(qp->req.max_psn) ||
	    atomic_read(&qp->flow->inflight) || READ_ONCE(dev->rxq[cpu % num].cpu) != cpu)
		return false;
	WRITE_ONCE(qp->service_queue, cpu % num);
	return true;
}

void weft_qp_schedule(struct weft_qp *qp)
{
	struct weft_dev *dev = qp->dev;
	struct weft_rxq *rxq;

	if (READ_ONCE(qp->service_dead) || xchg(&qp->service_queued, true))
		return;
	weft_qp_served_here(qp);
	rxq = &dev->rxq[READ_ONCE(qp->service_queue) % READ_ONCE(dev->num_rxq)];
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
	hrtimer_cancel(&rxq->timer);
	napi_disable(&rxq->napi);
	irq_work_sync(&rxq->irq_work);
	netif_napi_del(&rxq->napi);
	__skb_queue_purge(&rxq->skbs);
	__skb_queue_purge(&rxq->todo);
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
