//! `docs/conformance.md` names a test for each behaviour. This checks that the tests exist, that none is named for more
//! than two, and that no check of the API server is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_row_of_the_table_names_a_test_or_gives_a_reason() {
    let table = std::fs::read_to_string(root().join("docs/conformance.md")).expect("docs/conformance.md");
    let tests = tests();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    let mut complaints = Vec::new();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, _, ours] = cells[..] else {
            complaints.push(format!("not three cells: {row}"));
            continue;
        };
        if rule.starts_with("upstream test") || rule == "rule" {
            continue;
        }
        rows += 1;
        let named: Vec<&str> = ours.split('`').skip(1).step_by(2).filter(|name| name.contains("::")).collect();
        let reason = ours.strip_prefix("not offered: ").is_some_and(|reason| reason.len() > 20);
        if !reason && (named.is_empty() || !(ours.starts_with('`') || ours.starts_with("differs: "))) {
            complaints.push(format!("neither a test nor a reason: {row}"));
        }
        for name in named {
            *uses.entry(name).or_default() += 1;
            if !tests.contains(name) {
                complaints.push(format!("there is no test {name}"));
            }
        }
    }
    complaints.extend(uses.iter().filter(|(_, uses)| **uses > 2).map(|(name, uses)| format!("{name}: {uses} rows")));
    assert!(rows > 50, "the table has {rows} rows only: is it read rightly?");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The checks of the API server's protocol have numbers, here and in the names of its tests.
#[test]
fn every_numbered_check_of_the_api_server_has_its_row_and_every_numbered_test_is_named() {
    let table = std::fs::read_to_string(root().join("docs/conformance.md")).expect("docs/conformance.md");
    let tests = tests();
    for number in 1..=50 {
        let (row, prefix) = (format!("| C{number:02} | "), format!("::c{number:02}_"));
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with(&row)).collect();
        assert_eq!(rows.len(), 1, "rows of C{number:02}");
        let numbered: Vec<&String> = tests.iter().filter(|name| name.contains(&prefix)).collect();
        assert!(!numbered.is_empty(), "C{number:02} has no test");
        for name in numbered {
            assert!(rows[0].contains(&format!("`{name}`")), "{name} is not in the row of C{number:02}");
        }
    }
}

/// All tests, as `module::name`: those of this suite, those beside it, the unit tests by their path, and those of the API
/// server as `apiserver::target::module::name`.
fn tests() -> BTreeSet<String> {
    let library = root().join("crates/watchkeeper");
    let mut tests = BTreeSet::new();
    collect(&library.join("tests/suite"), "", &mut tests);
    collect(&library.join("tests"), "", &mut tests);
    collect(&library.join("src"), "", &mut tests);
    let server = root().join("crates/watchkeeper-apiserver/tests");
    assert!(
        server.is_dir(),
        "docs/conformance.md names tests of the crate watchkeeper-apiserver, and the folder {} is not there",
        server.display()
    );
    collect(&server, "apiserver::", &mut tests);
    tests
}

fn collect(folder: &Path, prefix: &str, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        if entry.is_dir() {
            collect(&entry, &format!("{prefix}{name}::"), tests);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let module = if name == "mod" { prefix.to_owned() } else { format!("{prefix}{name}::") };
            let text = std::fs::read_to_string(&entry).expect("a source file");
            let (mut is_test, mut inner) = (false, "");
            for line in text.lines().map(str::trim) {
                if line == "mod tests {" {
                    inner = "tests::";
                } else if line.starts_with("#[") {
                    is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                } else if let Some(rest) = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))
                    && std::mem::take(&mut is_test)
                {
                    let function = rest.split(['(', '<']).next().unwrap_or_default();
                    tests.insert(format!("{module}{inner}{function}"));
                }
            }
        }
    }
}
