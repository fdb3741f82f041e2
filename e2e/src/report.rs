//! What came of a suite: lines on stdout as it goes, and a fragment of Markdown in `target/e2e`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use crate::NotHere;

/// Collects the results of one suite.
#[derive(Debug)]
pub struct Report {
    suite: &'static str,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
    failed: usize,
    started: Instant,
}

impl Report {
    /// An empty one. The table's first column is the case and its last one the result; `columns` are those in between.
    pub fn new(suite: &'static str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { suite, columns, rows: Vec::new(), notes: Vec::new(), failed: 0, started: Instant::now() }
    }

    /// A case has ended. An error is printed in full; its first line stands in the table.
    pub fn row(&mut self, case: &str, cells: &[String], result: Result<(), String>) {
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        let told = match &result {
            Ok(()) => "ok".to_owned(),
            Err(why) => format!("FAILED: {}", first(why)),
        };
        let cells: Vec<String> = (0..self.columns.len()).map(|at| cells.get(at).cloned().unwrap_or_default()).collect();
        let named: Vec<String> =
            self.columns.iter().zip(&cells).map(|(column, cell)| format!("{column} {cell}")).collect();
        println!("{}/{case}: {told} ({})", self.suite, named.join(", "));
        if let Err(why) = result {
            self.failed += 1;
            eprintln!("{}/{case} FAILED:\n{why}\n", self.suite);
        }
        self.rows.push([vec![case.to_owned()], cells, vec![told]].concat());
    }

    /// A line below the table.
    pub fn note(&mut self, line: impl Into<String>) {
        let line = line.into();
        println!("{}: {line}", self.suite);
        self.notes.push(line);
    }

    /// How many cases have failed.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// Nothing could be run, which is no failure where there is no Go.
    pub fn skip(self, why: &NotHere) -> ExitCode {
        match why {
            NotHere::NoGo(_) => {
                println!("{}: skipped: {why}", self.suite);
                ExitCode::SUCCESS
            }
            NotHere::Failed(_) => {
                eprintln!("{}: {why}", self.suite);
                ExitCode::FAILURE
            }
        }
    }

    /// Writes the fragment, and says how the process is to end.
    pub fn finish(self) -> ExitCode {
        let (cases, seconds) = (self.rows.len(), self.started.elapsed().as_secs());
        println!("{}: {cases} cases, {} failed, {seconds} s", self.suite, self.failed);
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/e2e"));
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join(format!("{}.md", self.suite)), self.markdown()));
        if let Err(error) = written {
            eprintln!("the report cannot be written: {error}");
            return ExitCode::FAILURE;
        }
        if cases == 0 {
            eprintln!("{}: no case was run: is its name right?", self.suite);
            return ExitCode::FAILURE;
        }
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        };
        if !self.rows.is_empty() {
            let head = [vec!["case".to_owned()], self.columns.clone(), vec!["result".to_owned()]].concat();
            line(&head);
            line(&vec!["---".to_owned(); head.len()]);
            self.rows.iter().for_each(|row| line(row));
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }
}
