//! The words of a label selector. Counterpart: `Lexer` in `k8s.io/apimachinery/pkg/labels`.

/// One word, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Error,
    End,
    ClosedPar,
    Comma,
    DoesNotExist,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenPar,
}

/// The words of `selector`; the last one is [`Token::End`].
pub(super) fn words(selector: &str) -> Vec<Word> {
    let mut lexer = Lexer { bytes: selector.as_bytes(), position: 0 };
    let mut words = Vec::new();
    loop {
        let word = lexer.next();
        let is_end = word.token == Token::End;
        words.push(word);
        if is_end {
            return words;
        }
    }
}

struct Lexer<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Lexer<'_> {
    fn next(&mut self) -> Word {
        let mut byte = self.read();
        while is_whitespace(byte) {
            byte = self.read();
        }
        if byte == 0 {
            return Word { token: Token::End, text: String::new() };
        }
        self.position -= 1;
        if is_special(byte) { self.symbol() } else { self.identifier() }
    }

    /// The next byte. Zero is the end, and so is a zero byte within the text, as in Go.
    fn read(&mut self) -> u8 {
        let Some(byte) = self.bytes.get(self.position) else { return 0 };
        self.position += 1;
        *byte
    }

    fn identifier(&mut self) -> Word {
        let mut text = Vec::new();
        loop {
            match self.read() {
                0 => break,
                byte if is_special(byte) || is_whitespace(byte) => {
                    self.position -= 1;
                    break;
                }
                byte => text.push(byte),
            }
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        Word { token: token_of(&text).unwrap_or(Token::Identifier), text }
    }

    /// The longest symbol that begins here.
    fn symbol(&mut self) -> Word {
        let mut text = String::new();
        let mut found = None;
        loop {
            match self.read() {
                0 => break,
                byte if is_special(byte) => {
                    text.push(char::from(byte));
                    match token_of(&text) {
                        Some(token) => found = Some(Word { token, text: text.clone() }),
                        None if found.is_some() => {
                            self.position -= 1;
                            break;
                        }
                        None => {}
                    }
                }
                _ => {
                    self.position -= 1;
                    break;
                }
            }
        }
        found.unwrap_or_else(|| Word { token: Token::Error, text: format!("error expected: keyword found '{text}'") })
    }
}

fn token_of(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::ClosedPar,
        "," => Token::Comma,
        "!" => Token::DoesNotExist,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::GreaterThan,
        "in" => Token::In,
        "<" => Token::LessThan,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::OpenPar,
        _ => return None,
    })
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}
