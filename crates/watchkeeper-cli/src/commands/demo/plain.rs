//! The demo in lines: a few at first, one a second, and some at the end.

use std::io::Write;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::check::Verdict;
use super::model::Model;
use super::{Cluster, Options, interrupted, last_words, over};
use crate::failure::{Failure, Outcome};
use crate::terminal::{Output, bytes, count, escape_text, is_reader_gone, seconds};

/// How often there is a line.
const LINE: Duration = Duration::from_secs(1);

/// Prints lines until it is over, and gives what came of comparing.
pub(crate) async fn print(options: &Options, token: CancellationToken) -> Outcome<Verdict> {
    let mut out = Output::stdout();
    let mut written =
        say(&mut out, &format!("making a cluster of {} objects in memory", count(options.objects as u64)));
    let cluster = tokio::select! {
        cluster = Cluster::start(options) => cluster?,
        () = token.cancelled() => return Err(interrupted()),
    };
    let kubeconfig = cluster.kubeconfig.display().to_string();
    written = written.and_then(|()| {
        say(&mut out, &format!("it listens on {}, also for others:", cluster.url))?;
        say(&mut out, &format!("  export KUBECONFIG={kubeconfig}"))?;
        say(&mut out, "  kubectl get pods -A -w")?;
        say(&mut out, "  watchkeeper watch pods -A")
    });
    let took = tokio::select! {
        took = cluster.sync(options.seed) => took?,
        () = token.cancelled() => return Err(interrupted()),
    };
    let mut model = Model::new(options);
    model.look(&cluster);
    written = written.and_then(|()| say(&mut out, &synced(&model, took)));
    if written.is_ok() {
        tokio::select! {
            () = over(options) => {}
            () = token.cancelled() => {}
            result = lines(&mut out, &mut model, &cluster) => written = result,
        }
    }
    model.look(&cluster);
    let verdict = cluster.stop().await;
    for line in summary(&model, &verdict) {
        written = written.and_then(|()| say(&mut out, &line));
    }
    match written {
        Err(error) if !is_reader_gone(&error) => Err(Failure::from(error)),
        _ => Ok(verdict),
    }
}

/// Prints a line a second, until nobody reads them.
async fn lines(out: &mut Output, model: &mut Model, cluster: &Cluster) -> std::io::Result<()> {
    let mut ticks = interval(LINE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first one is at once.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        model.look(cluster);
        say(out, &line(model))?;
    }
}

fn say(out: &mut Output, line: &str) -> std::io::Result<()> {
    writeln!(out, "{}", escape_text(line))?;
    out.flush()
}

fn synced(model: &Model, took: Duration) -> String {
    let (objects, kinds) = (count(model.rows.objects()), model.rows.rows.len());
    format!("synced {objects} objects of {kinds} kinds in {:.2} s", took.as_secs_f64())
}

/// `  3 s  3,012 objects  28 changes/s  11 of 11 kinds watched  0 gaps, at most 0 ms  0 faults  equal at version 4242`
fn line(model: &Model) -> String {
    let rows = &model.rows;
    let equal = match (model.verdict.differences().next(), model.verdict.equal_at()) {
        (Some(difference), _) => format!("DIFFERS: {difference}"),
        (None, Some(version)) => format!("equal at version {version}"),
        (None, None) => "not compared yet".to_owned(),
    };
    format!(
        "{:>4} s  {} objects  {:>3} changes/s  {} of {} kinds watched  {} gaps, at most {}  {} faults  {equal}",
        model.elapsed.as_secs(),
        count(rows.objects()),
        count(rows.last_second()),
        rows.watching(),
        rows.rows.len(),
        count(rows.gaps()),
        seconds(rows.longest_gap()),
        count(model.faults.total),
    )
}

fn summary(model: &Model, verdict: &Verdict) -> Vec<String> {
    let rows = &model.rows;
    let mut lines = vec![format!(
        "ended after {}: {} changes, {} gaps (the longest {}), {} relists, {} faults",
        seconds(model.elapsed),
        count(rows.changes()),
        count(rows.gaps()),
        seconds(rows.longest_gap()),
        count(rows.relists()),
        count(model.faults.total),
    )];
    if model.faults.total > 0 {
        let each: Vec<String> = model.faults.counts.iter().map(|(name, times)| format!("{name} {times}")).collect();
        lines.push(format!("faults: {}", each.join(", ")));
    }
    let (json, memory) = rows.sizes();
    if memory > 0 {
        let each = rows.size_of_each().map(|(json, memory)| format!(" ({} and {} each)", bytes(json), bytes(memory)));
        lines.push(format!(
            "{} objects: {} of JSON, {} in memory{}",
            count(rows.objects()),
            bytes(json),
            bytes(memory),
            each.unwrap_or_default(),
        ));
    }
    let equal = if verdict.has_differed() { "DIFFERED" } else { "equal" };
    let unknown = match verdict.not_comparable {
        0 => String::new(),
        times => format!(" ({} times the server's journal did not reach back far enough)", count(times)),
    };
    lines.push(format!("{equal}: {}{unknown}", last_words(verdict)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::check::Checked;

    #[test]
    fn a_line_says_at_which_version_all_kinds_were_equal() {
        let mut model = Model::default();
        assert!(line(&model).ends_with("not compared yet"), "{}", line(&model));
        let at = |version| Checked { equal_at: Some(version), ..Checked::default() };
        model.verdict.kinds = vec![at(9), at(7)];
        assert!(line(&model).ends_with("equal at version 7"), "{}", line(&model));
        model.verdict.kinds[0].difference = Some("pods at revision 9: missing a (3)".to_owned());
        assert!(line(&model).ends_with("DIFFERS: pods at revision 9: missing a (3)"), "{}", line(&model));
        assert!(summary(&model, &model.verdict).iter().any(|line| line.starts_with("DIFFERED")));
    }
}
