//! Ratios that must not be fallen below.

use std::collections::BTreeMap;
use std::path::Path;

/// What a run must reach at least, of what it was when the floor was written.
const SHARE: f64 = 0.8;

const HEAD: &str = "\
# `cargo xtask bench-quick` fails when a ratio is below its floor here. A ratio says how many times better than a peer
# watchkeeper is. `cargo xtask bench-quick --write-floor` writes 0.8 of what it finds. Whoever lowers a floor says why in
# RESULTS.md.
";

/// Ratios by row and peer.
pub(crate) type Ratios = BTreeMap<String, BTreeMap<String, f64>>;

pub(crate) fn read(path: &Path) -> Result<Ratios, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{} cannot be read: {error}; --write-floor makes it", path.display()))?;
    toml::from_str(&text).map_err(|error| format!("{} is no table of ratios: {error}", path.display()))
}

/// Writes floors for ratios. Peers that did not run keep theirs.
pub(crate) fn write(path: &Path, ratios: &Ratios) -> Result<(), String> {
    let mut floors = read(path).unwrap_or_default();
    for (row, peers) in ratios {
        let floors = floors.entry(row.clone()).or_default();
        // Two digits say enough.
        let floor = |ratio: &f64| (ratio * SHARE * 100.0).floor() / 100.0;
        floors.extend(peers.iter().map(|(peer, ratio)| (peer.clone(), floor(ratio))));
    }
    let tables = toml::to_string(&floors).map_err(|error| error.to_string())?;
    std::fs::write(path, format!("{HEAD}\n{tables}"))
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// A sentence for each ratio that is too low, or is not there although it should be. `ran` says which peers were there.
pub(crate) fn problems(floors: &Ratios, ratios: &Ratios, ran: impl Fn(&str) -> bool) -> Vec<String> {
    let pairs = floors.iter().flat_map(|(row, peers)| peers.iter().map(move |(peer, floor)| (row, peer, *floor)));
    let problem = |(row, peer, floor): (&String, &String, f64)| match ratios.get(row).and_then(|peers| peers.get(peer))
    {
        Some(ratio) if *ratio >= floor => None,
        Some(ratio) => Some(format!("{row} against {peer} is {ratio:.2}, and its floor is {floor:.2}")),
        None if ran(peer) => Some(format!("{row} against {peer} was not measured, and its floor is {floor:.2}")),
        None => None,
    };
    pairs.filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(values: &[(&str, &str, f64)]) -> Ratios {
        let mut ratios = Ratios::new();
        for (row, peer, value) in values {
            ratios.entry((*row).to_owned()).or_default().insert((*peer).to_owned(), *value);
        }
        ratios
    }

    #[test]
    fn what_is_below_its_floor_or_missing_is_a_problem() {
        let floors =
            ratios(&[("sync-time", "kube-rs", 8.0), ("events", "kube-rs", 7.0), ("events", "client-go-json", 20.0)]);
        let found = ratios(&[("sync-time", "kube-rs", 7.9), ("events", "kube-rs", 7.0)]);
        let problems_with = |ran: &[&str]| problems(&floors, &found, |peer| ran.contains(&peer));
        assert_eq!(problems_with(&["kube-rs"]), ["sync-time against kube-rs is 7.90, and its floor is 8.00"]);
        assert_eq!(problems_with(&["kube-rs", "client-go-json"]).len(), 2);
    }

    #[test]
    fn a_floor_is_a_share_and_stays_for_peers_that_did_not_run() {
        let path = std::env::temp_dir().join(format!("watchkeeper-floor-{}.toml", std::process::id()));
        write(&path, &ratios(&[("events", "kube-rs", 10.0), ("events", "client-go-json", 30.0)])).unwrap();
        write(&path, &ratios(&[("events", "kube-rs", 5.0)])).unwrap();
        let floors = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(floors, ratios(&[("events", "kube-rs", 4.0), ("events", "client-go-json", 24.0)]));
    }
}
