//! What is different between two texts, line by line.

/// Lines of one difference that are shown.
const SHOWN: usize = 60;
/// Lines around what is different that are shown too.
const CONTEXT: usize = 2;

/// The lines that only one of both has, with `-` and `+`, and some of those around them. Nothing, if both are the same.
pub(crate) fn unified(ours: &str, theirs: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
    let marked = marked(&a, &b);
    let mut text = String::new();
    let (mut skipped, mut shown) = (false, 0);
    for (at, (mark, line)) in marked.iter().enumerate() {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(marked.len());
        if marked[around].iter().all(|(mark, _)| *mark == ' ') {
            skipped = true;
            continue;
        }
        if skipped {
            text += "  ...\n";
            skipped = false;
        }
        if shown == SHOWN {
            return text + "  ... and more\n";
        }
        shown += 1;
        text += &format!("{mark} {line}\n");
    }
    text
}

/// All lines of both, in order, with what is in only one marked. By the longest common sequence of lines.
fn marked<'a>(a: &[&'a str], b: &[&'a str]) -> Vec<(char, &'a str)> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (middle_a, middle_b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    // How many lines are common from here on.
    let mut common = vec![vec![0_usize; middle_b.len() + 1]; middle_a.len() + 1];
    for (i, line) in middle_a.iter().enumerate().rev() {
        for (j, other) in middle_b.iter().enumerate().rev() {
            common[i][j] =
                if line == other { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let mut lines: Vec<(char, &str)> = a[..start].iter().map(|line| (' ', *line)).collect();
    let (mut i, mut j) = (0, 0);
    while i < middle_a.len() || j < middle_b.len() {
        if i < middle_a.len() && j < middle_b.len() && middle_a[i] == middle_b[j] {
            lines.push((' ', middle_a[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == middle_b.len() || (i < middle_a.len() && common[i + 1][j] >= common[i][j + 1]) {
            lines.push(('-', middle_a[i]));
            i += 1;
        } else {
            lines.push(('+', middle_b[j]));
            j += 1;
        }
    }
    lines.extend(a[a.len() - end..].iter().map(|line| (' ', *line)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_nothing() {
        assert_eq!(unified("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn what_differs_is_shown_with_what_is_around_it() {
        assert_eq!(unified("1\n2\n3\n4\nx\n5\n", "1\n2\n3\n4\ny\n5\n"), "  ...\n  3\n  4\n- x\n+ y\n  5\n");
        assert_eq!(unified("a\nb\nc\n", "a\nc\n"), "  a\n- b\n  c\n");
        assert_eq!(unified("", "a\n"), "+ a\n");
    }
}
