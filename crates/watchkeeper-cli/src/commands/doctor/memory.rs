//! What would it take to keep the objects?
//!
//! A sample is listed and really packed, with what an informer uses. What others would take is told by ratios that were
//! measured elsewhere, and said so.

use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use watchkeeper::{Error, ListMetadata, ListOptions, ListPart, ListWatch, ListerWatcher as _, Object, ResourceVersion};

use super::report::{Check, Report};
use crate::cluster::{Access, ScopeOptions, Target};
use crate::terminal::{bytes, count};

/// Objects of a page, and of a sample if they are of a usual size.
const PAGE: u32 = 500;
/// Below a mebibyte nothing is packed: a sample of less would not tell what all of them take.
const SAMPLE_BYTES: usize = 2 << 20;
const MOST_PAGES: usize = 8;
/// No page is that large: a server that sends one without end is not listened to any longer.
const MOST_BYTES: usize = 256 << 20;
/// How long packing a sample may take.
const PACKING: Duration = Duration::from_secs(10);

/// Slot, hash table and namespace index of an object: docs/performance.md.
const PLACE: f64 = 38.0;
/// What an informer takes besides, however many objects there are: buffers, and what the allocator holds. By
/// `watchkeeper bench`, which found 6 to 8 MB with 2,000, 10,000 and 20,000 pods.
const BESIDES: f64 = 8e6;
/// Resident memory by bytes of JSON, of 100,000 pods of 7.7 KB: docs/performance.md.
const CLIENT_GO: f64 = 14_870.0 / 7_700.0;
const KUBE_RS: f64 = 58_000.0 / 7_700.0;

/// A kind is large from here on.
const MANY: u64 = 20_000;
const MUCH: f64 = 100e6;

struct Sample {
    objects: Vec<Object>,
    json: usize,
    /// How many there are in all; at least, if the server does not tell.
    total: u64,
    is_exact: bool,
    /// All of it is in the sample.
    is_whole: bool,
    version: ResourceVersion,
}

/// Tells what caching a kind takes.
pub(super) async fn check(
    access: &Access,
    scope: &ScopeOptions,
    target: &Target,
    report: &mut Report,
) -> io::Result<()> {
    let name = target.resource.full_name();
    let sources = match scope.source(access, target) {
        Ok(source) => source.partitions(),
        Err(failure) => return report.add(Check::of_failure("memory", &failure)),
    };
    // Of several namespaces the first stands for all.
    let Some(source) = sources.into_iter().next() else { return Ok(()) };
    let sample = match timeout(access.request_timeout, sample(&source)).await {
        Ok(Ok(sample)) => sample,
        Ok(Err(error)) => {
            let check = Check::failed("memory", format!("a page of {name} cannot be read: {error}"));
            let check = check.with_remedy("look at the server's health, and try again");
            return report.add(if error.is_forbidden() || error.is_unauthorized() { check.refused() } else { check });
        }
        Err(_) => {
            let check = Check::warning("memory", format!("a page of {name} did not come in time"));
            return report.add(check.with_remedy("wait longer: --request-timeout 2m"));
        }
    };
    if sample.objects.is_empty() {
        let place = if target.resource.namespaced { scope.describe(access) } else { String::new() };
        return report.add(Check::ok("memory", format!("there are no {name}{place}")));
    }
    let is_packed = pack(&source, &sample, access.request_timeout).await;
    report.add(estimate(&name, &sample, is_packed, source.packing().dictionary_bytes))
}

/// Lists pages until there is enough to tell.
async fn sample(source: &ListWatch) -> Result<Sample, Error> {
    let (mut objects, mut json) = (Vec::new(), 0);
    let mut options = ListOptions { limit: Some(PAGE), ..ListOptions::default() };
    let mut last = ListMetadata::default();
    let mut is_endless = false;
    for _ in 0..MOST_PAGES {
        let mut listing = source.list(options.clone()).await?;
        while !is_endless && let Some(part) = listing.next().await? {
            match part {
                ListPart::Item(object) => {
                    json += object.json().map_or(0, |json| json.len());
                    objects.push(object);
                }
                ListPart::Metadata(metadata) => last = metadata,
                ListPart::Bad(_) | ListPart::Progress => {}
            }
            is_endless = json >= MOST_BYTES;
        }
        options.continue_token = last.continue_token.clone();
        if options.continue_token.is_none() || json >= SAMPLE_BYTES {
            break;
        }
    }
    let seen = objects.len() as u64;
    let is_whole = last.continue_token.is_none() && !is_endless;
    let remaining = last.remaining_item_count.filter(|_| !is_whole);
    let total = seen.saturating_add(remaining.unwrap_or(0));
    let (is_exact, version) = (is_whole || remaining.is_some(), last.resource_version);
    Ok(Sample { objects, json, total, is_exact, is_whole, version })
}

/// Has the sample packed. A source packs when its list has come to an end, or a watch begins.
async fn pack(source: &ListWatch, sample: &Sample, limit: Duration) -> bool {
    if !sample.is_whole {
        let resource_version = sample.version.clone();
        let watch = ListOptions { resource_version, timeout: Some(Duration::from_secs(1)), ..ListOptions::default() };
        if !matches!(timeout(limit, source.watch(watch)).await, Ok(Ok(_))) {
            return false;
        }
    }
    let kept = || sample.objects.iter().map(Object::memory).sum::<usize>();
    let started = Instant::now();
    let (mut before, mut quiet) = (kept(), 0);
    // What is too small to be packed never is: that nothing changes any more is all there is to see.
    while quiet < 5 && started.elapsed() < PACKING {
        sleep(Duration::from_millis(50)).await;
        let now = kept();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
    true
}

fn estimate(name: &str, sample: &Sample, is_packed: bool, dictionary: usize) -> Check {
    let number = sample.objects.len() as f64;
    let mean_json = sample.json as f64 / number;
    let mean_kept = sample.objects.iter().map(|object| object.memory() as f64).sum::<f64>() / number + PLACE;
    let total = sample.total as f64;
    let all_json = mean_json * total;
    let size = |size: f64| bytes(size as u64);

    let at_least = if sample.is_exact { "" } else { "at least " };
    let kept = match is_packed {
        true => {
            format!(
                "about {} in watchkeeper ({} each), and some {} besides, however many there are",
                size(mean_kept * total + dictionary as f64),
                size(mean_kept),
                size(BESIDES)
            )
        }
        false => "packed they were not, because no watch could be opened".to_owned(),
    };
    let basis = if sample.is_whole {
        "measured on all of them".to_owned()
    } else {
        format!("measured on {} of them, and more pack better", count(sample.objects.len() as u64))
    };
    let found = format!(
        "{name}: {at_least}{} objects of {} JSON, {} in all: {kept}, {basis}; decoded some {} in client-go and {} in kube-rs, by \
         the ratios of docs/performance.md",
        count(sample.total),
        size(mean_json),
        size(all_json),
        size(all_json * CLIENT_GO),
        size(all_json * KUBE_RS),
    );
    let check = Check::ok("memory", found);
    if sample.total >= MANY || all_json >= MUCH {
        return check.with_remedy(
            "this is a large kind: watch one namespace, or with a selector (-l, --field-selector spec.nodeName=...), \
             or metadata only, if that is enough",
        );
    }
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(total: u64, is_exact: bool) -> Sample {
        let json = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
        let objects = vec![Object::from_json(json).expect("an object")];
        Sample { objects, json: json.len(), total, is_exact, is_whole: total == 1, version: ResourceVersion::default() }
    }

    fn text(check: &Check) -> String {
        serde_json::to_string(check).expect("JSON")
    }

    #[test]
    fn an_estimate_says_what_it_is_based_on() {
        let whole = text(&estimate("pods", &sample(1, true), true, 0));
        assert!(whole.contains("1 objects") && whole.contains("measured on all of them"), "{whole}");
        assert!(!whole.contains("large kind") && !whole.contains("at least"), "{whole}");
        let part = text(&estimate("pods", &sample(50_000, true), true, 0));
        assert!(part.contains("50,000 objects") && part.contains("measured on 1 of them"), "{part}");
        assert!(part.contains("selector"), "{part}");
        let unknown = text(&estimate("pods", &sample(2, false), false, 0));
        assert!(unknown.contains("at least 2 objects") && unknown.contains("no watch could be opened"), "{unknown}");
    }
}
