//! From the states of informers to series, family by family.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabel as _, EncodeLabelSet, EncodeMetric as _, LabelSetEncoder,
    MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;

use super::{Published, Scraped};
use crate::metrics::ListOutcome;
use crate::{Reason, ReflectorStatus, ResourceVersion};

/// Writes all families. Counters get their `_total` from the encoder.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, informers: &[Scraped]) -> fmt::Result {
    let mut page = Page { encoder, informers };
    if informers.is_empty() {
        return Ok(());
    }
    informer(&mut page)?;
    connection(&mut page)?;
    handlers(&mut page)?;
    reflector(&mut page)
}

/// The queue and the store.
fn informer(page: &mut Page<'_, '_>) -> fmt::Result {
    page.gauge("informer_synced", "1 if the first list is in the store", |informer| {
        Some(u64::from(informer.sample.synced))
    })?;
    page.gauge("informer_queued_items", "Changes that wait to be applied to the store", |informer| {
        Some(informer.sample.queued_items)
    })?;
    page.histogram(
        "informer_processing_latency_seconds",
        "Time to apply a batch of changes and to pass it on to the handlers",
        |informer| &informer.processing_latency,
    )?;
    page.gauge(
        "informer_store_resource_version",
        "The 15 least significant digits of the version that the store shows",
        |informer| last_digits(&informer.sample.store_resource_version),
    )?;
    page.gauge("informer_store_objects", "Objects in the store", |informer| Some(informer.sample.store_objects))?;
    page.gauge("informer_store_bytes_estimate", "About what the objects in the store take in memory", |informer| {
        Some(informer.sample.store_bytes)
    })?;
    page.gauge("informer_stale_objects", "Objects of which the newest state could not be used", |informer| {
        Some(informer.statuses().map(|status| status.stale_object_count).sum::<u64>())
    })
}

/// Whether anything still comes from the server.
fn connection(page: &mut Page<'_, '_>) -> fmt::Result {
    page.gauge(
        "informer_last_contact_timestamp_seconds",
        "When anything last came from the server; of several watches, the one that heard longest ago",
        |informer| unix_time(informer.since_contact()),
    )?;
    page.gauge("informer_last_event_age_seconds", "Time since the last event of a watch", |informer| {
        let events = informer.statuses().filter_map(|status| status.last_event);
        events.max().map(|event| event.elapsed().as_secs_f64())
    })?;
    page.counters(
        "informer_watch_restarts",
        "Watches opened in place of another, without a list",
        "reason",
        |informer| informer.by_reason(|status| &status.watch_restarts),
    )?;
    page.counters("informer_relists", "Lists after the first one", "reason", |informer| {
        informer.by_reason(|status| &status.relists)
    })?;
    page.counters("informer_lists", "Lists, by how they ended", "result", |informer| {
        let lists = ListOutcome::ALL.iter().zip(&informer.published.lists);
        lists
            .map(|(outcome, count)| (outcome.to_string(), count.load(Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    })
}

/// Of handlers with one name, the sum: a series comes once.
fn handlers(page: &mut Page<'_, '_>) -> fmt::Result {
    page.gauges("informer_pending_notifications", "Events that wait for a handler", "handler", |informer| {
        informer.by_handler(|handler| handler.pending as u64)
    })?;
    page.counters("informer_delivered_notifications", "Events that a handler was given", "handler", |informer| {
        informer.by_handler(|handler| handler.delivered)
    })?;
    page.counters("informer_handler_panics", "Panics of a handler", "handler", |informer| {
        informer.by_handler(|handler| handler.panics)
    })
}

/// Those that client-go's reflector has had a provider for.
fn reflector(page: &mut Page<'_, '_>) -> fmt::Result {
    page.counter("reflector_lists", "Lists", |informer| informer.lists.iter().map(|count| count.load(Relaxed)).sum())?;
    page.histogram("reflector_list_duration_seconds", "Time of a list, until it is in the queue", |informer| {
        &informer.list_duration
    })?;
    page.histogram("reflector_items_per_list", "Objects of a list", |informer| &informer.items_per_list)?;
    page.counter("reflector_watches", "Watches that are over", |informer| informer.watches.load(Relaxed))?;
    page.counter("reflector_short_watches", "Watches that ended within a second, without an event", |informer| {
        informer.short_watches.load(Relaxed)
    })?;
    page.histogram("reflector_watch_duration_seconds", "Time of a watch", |informer| &informer.watch_duration)?;
    page.histogram("reflector_items_per_watch", "Events of a watch", |informer| &informer.items_per_watch)?;
    page.versions(
        "reflector_last_resource_version",
        "The 15 least significant digits of the version that the watch goes on from",
    )
}

/// What is written, and of whom.
struct Page<'p, 'e> {
    encoder: &'p mut DescriptorEncoder<'e>,
    informers: &'p [Scraped],
}

impl Page<'_, '_> {
    fn family(&mut self, name: &'static str, help: &str, kind: MetricType) -> Result<MetricEncoder<'_>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, None, kind)
    }

    /// One series for each informer that has the value.
    fn gauge<V: EncodeGaugeValue>(
        &mut self,
        name: &'static str,
        help: &str,
        value: impl Fn(&Scraped) -> Option<V>,
    ) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Gauge)?;
        for informer in informers {
            if let Some(value) = value(informer) {
                family.encode_family(&Labels::of(informer))?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    /// One series for each informer and value of a label.
    fn gauges(
        &mut self,
        name: &'static str,
        help: &str,
        label: &'static str,
        values: impl Fn(&Scraped) -> BTreeMap<String, u64>,
    ) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Gauge)?;
        for informer in informers {
            for (text, value) in values(informer) {
                family.encode_family(&Labels::with(informer, label, &text))?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &'static str, help: &str, value: impl Fn(&Published) -> u64) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Counter)?;
        for informer in informers {
            let (labels, value) = (Labels::of(informer), value(&informer.published));
            family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    fn counters(
        &mut self,
        name: &'static str,
        help: &str,
        label: &'static str,
        values: impl Fn(&Scraped) -> BTreeMap<String, u64>,
    ) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Counter)?;
        for informer in informers {
            for (text, value) in values(informer) {
                let labels = Labels::with(informer, label, &text);
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
            }
        }
        Ok(())
    }

    fn histogram(&mut self, name: &'static str, help: &str, of: impl Fn(&Published) -> &Histogram) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Histogram)?;
        for informer in informers {
            of(&informer.published).encode(family.encode_family(&Labels::of(informer))?)?;
        }
        Ok(())
    }

    /// With a label for the partition, where there are any.
    fn versions(&mut self, name: &'static str, help: &str) -> fmt::Result {
        let informers = self.informers;
        let mut family = self.family(name, help, MetricType::Gauge)?;
        for informer in informers {
            for (partition, status) in &informer.sample.reflectors {
                let Some(version) = last_digits(&status.resource_version) else { continue };
                let partition = partition.as_deref().map(|partition| ("partition", partition));
                family.encode_family(&Labels { informer, extra: partition })?.encode_gauge(&version)?;
            }
        }
        Ok(())
    }
}

impl Scraped {
    fn statuses(&self) -> impl Iterator<Item = &ReflectorStatus> {
        self.sample.reflectors.iter().map(|(_, status)| status)
    }

    /// How long nothing has come; of one that has never heard anything, since it began. So it is noticed too.
    fn since_contact(&self) -> Duration {
        let contact = |status: &ReflectorStatus| status.last_contact.unwrap_or(self.published.begun);
        self.statuses().map(contact).min().unwrap_or(self.published.begun).elapsed()
    }

    fn by_reason(&self, counts: impl Fn(&ReflectorStatus) -> &BTreeMap<Reason, u64>) -> BTreeMap<String, u64> {
        let counts = self.statuses().flat_map(|status| counts(status).iter());
        sums(counts.map(|(reason, count)| (reason.to_string(), *count)))
    }

    fn by_handler(&self, value: impl Fn(&crate::metrics::HandlerSample) -> u64) -> BTreeMap<String, u64> {
        sums(self.sample.handlers.iter().map(|handler| (handler.name.clone(), value(handler))))
    }
}

fn sums(values: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    values.fold(BTreeMap::new(), |mut sums, (label, value)| {
        let sum: &mut u64 = sums.entry(label).or_default();
        *sum = sum.saturating_add(value);
        sums
    })
}

/// The labels of one series.
struct Labels<'a> {
    informer: &'a Scraped,
    extra: Option<(&'static str, &'a str)>,
}

impl<'a> Labels<'a> {
    fn of(informer: &'a Scraped) -> Self {
        Self { informer, extra: None }
    }

    fn with(informer: &'a Scraped, label: &'static str, value: &'a str) -> Self {
        Self { informer, extra: Some((label, value)) }
    }
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.informer
            .published
            .labels()
            .into_iter()
            .chain(self.extra)
            .try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

/// A float holds 15 digits exactly. Versions that are no numbers have no series.
fn last_digits(version: &ResourceVersion) -> Option<u64> {
    let text = version.as_str();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let last = text.get(text.len().saturating_sub(15)..).filter(|_| digits)?;
    last.parse().ok()
}

fn unix_time(age: Duration) -> Option<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(now.saturating_sub(age).as_secs_f64())
}
