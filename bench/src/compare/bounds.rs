//! What watchkeeper has to keep to by itself.

use crate::configuration::Configuration;
use crate::figures::{Figures, Measured};
use crate::plan::{MOST_PODS, OURS_TEN_HANDLERS, PODS, Peer, SIZES, ours, reads_of_ours};
use crate::results::{Better, Results};
use crate::rows::Unit;
use crate::tables::{relist_cpu_for_each, sync_for_each};

/// A value and the most that it may be.
pub(crate) struct Bound {
    pub(crate) title: String,
    /// None if it was not measured.
    pub(crate) value: Option<f64>,
    pub(crate) at_most: Option<f64>,
    pub(crate) unit: Option<Unit>,
}

/// A configuration of so many pods.
type Of = fn(u32) -> Configuration;
/// What is computed of the figures of a run.
type Compute = fn(&Figures) -> Option<f64>;

/// Growth is even if the greatest is within this of the least.
const EVEN: f64 = 1.3;

pub(crate) fn bounds(results: &Results) -> Vec<Bound> {
    let median = |configuration: Configuration, figure| Some(results.measured(&configuration, figure)?.median);
    let one = median(ours(PODS), "events.cpu_us");
    let ten = median(OURS_TEN_HANDLERS, "events.cpu_us");
    let relist = results.computed(&ours(PODS), |run| Some(run.get("relist.rss_peak")? / run.get("relist.rss_before")?));
    let kube_rs = results.best(&Peer::KubeRs.keys(PODS), "sync.wall_s", Better::Less);
    let factor =
        |title: &str, value, at_most| Bound { title: title.to_owned(), value, at_most: Some(at_most), unit: None };
    let mut bounds = vec![
        factor("ten handlers against one, CPU per event", ten.zip(one).map(|(ten, one)| ten / one), 1.15),
        factor("relist of unchanged pods, peak over steady", relist.map(|measured| measured.median), 1.2),
        Bound {
            title: "1,000,000 pods, resident after sync".to_owned(),
            value: median(ours(MOST_PODS), "sync.rss_after"),
            at_most: Some(1e9),
            unit: Some(Unit::Bytes),
        },
        Bound {
            title: "1,000,000 pods, time to sync, against that of kube-rs for 100,000".to_owned(),
            value: median(ours(MOST_PODS), "sync.wall_s"),
            at_most: kube_rs.map(|(_, measured)| measured.median),
            unit: Some(Unit::Seconds),
        },
    ];
    let growth: [(&str, Of, Compute); 5] = [
        ("time to sync for each pod", ours, sync_for_each),
        ("the same with an index by a field", reads_of_ours, sync_for_each),
        ("CPU per event", ours, |figures| figures.get("events.cpu_us")),
        ("the same with an index by a field", reads_of_ours, |figures| figures.get("events.cpu_us")),
        // Not its time: every client waits before it lists again, for as long as chance says.
        ("CPU of a relist for each pod", ours, relist_cpu_for_each),
    ];
    bounds.extend(growth.map(|(title, of, compute)| {
        let at_sizes = SIZES.into_iter().map(|size| Some(results.computed(&of(size), compute)?.median));
        factor(&format!("{title}, greatest over least, 1,000 to 1,000,000 pods"), greatest_over_least(at_sizes), EVEN)
    }));
    // What does not grow, dictionaries and what makes them, would hide what does; a thousand pods are less than what waits to
    // be packed.
    let steps = SIZES[1..].windows(2).map(|step| {
        let grown = |size| median(ours(size), "sync.rss_after");
        Some((grown(step[1])? - grown(step[0])?) / f64::from(step[1] - step[0]))
    });
    let title = "resident bytes for each further pod, greatest over least, 10,000 to 1,000,000 pods";
    bounds.push(factor(title, greatest_over_least(steps), EVEN));
    bounds
}

/// None if one of them is not known.
fn greatest_over_least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let all = Measured::of(values.collect::<Option<Vec<f64>>>()?)?;
    Some(all.most / all.least)
}

impl Bound {
    /// Whether it is kept to, if that is known.
    pub(crate) fn kept(&self) -> Option<bool> {
        Some(self.value? <= self.at_most?)
    }

    pub(crate) fn text(&self, value: Option<f64>) -> String {
        match (value, self.unit) {
            (None, _) => "not measured".to_owned(),
            (Some(value), Some(unit)) => unit.text(value),
            (Some(value), None) => format!("{value:.2}x"),
        }
    }
}
