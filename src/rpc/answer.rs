//! Answers put together: envelopes around results, in the order of the requests, as whole or as frames.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::desk::answer::Answer;
use crate::http::{FRAME_BYTES, FrameSource, Holding, HttpError};

fn begin(text: &mut Vec<u8>, id: &RawValue) {
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.get().as_bytes());
}

/// The text of a response up to its result.
pub(super) fn head(id: &RawValue) -> Vec<u8> {
    let mut text = Vec::with_capacity(128);
    begin(&mut text, id);
    text.extend_from_slice(br#","result":"#);
    text
}

/// About how much memory what came of a call holds.
pub(super) fn bytes_held(result: &Result<Answer, Fault>) -> usize {
    match result {
        Ok(answer) => answer.bytes_held(),
        Err(fault) => fault.bytes_held(),
    }
}

/// A piece of a body.
enum Piece {
    Text(Bytes),
    Frames(Box<dyn FrameSource>),
}

/// A body that was put together.
pub(super) enum Made {
    Whole(Bytes),
    /// The first frame, what gives the others, and what gives them without waiting.
    Begun(Bytes, Box<dyn FrameSource>, Option<Box<dyn FrameSource>>),
}

/// A body in pieces.
#[derive(Default)]
pub(super) struct Pieces {
    /// Counts the pieces.
    holding: Option<Holding>,
    pieces: VecDeque<Piece>,
    /// Text that is not a piece yet.
    text: Vec<u8>,
}

/// Results up to this length are copied together; longer ones stay where they are.
const COPIED_MAX: usize = 4096;

impl Pieces {
    /// None yet; `holding` counts what they will be made of.
    pub(super) fn new(holding: Holding) -> Self {
        Self {
            holding: Some(holding),
            ..Self::default()
        }
    }

    /// Appends punctuation.
    pub(super) fn mark(&mut self, byte: u8) {
        self.text.push(byte);
    }

    /// Appends the response to the request with this id.
    pub(super) fn response(&mut self, id: &RawValue, result: Result<Answer, Fault>) {
        match result {
            Err(fault) => {
                begin(&mut self.text, id);
                self.text.extend_from_slice(br#","error":"#);
                fault.write(&mut self.text);
            }
            Ok(answer) => {
                self.text.append(&mut head(id));
                self.answer(answer);
            }
        }
        self.text.push(b'}');
    }

    /// Appends the response to the request with this id; what was answered may be the text of all of it.
    pub(super) fn add(&mut self, id: &RawValue, is_response: bool, result: Result<Answer, Fault>) {
        match result {
            Ok(answer) if is_response => self.answer(answer),
            result => self.response(id, result),
        }
    }

    /// Appends what was answered.
    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Whole(body, _) => self.body(body),
            Answer::Begun(first, source, _) => {
                self.body(first);
                self.cut();
                self.pieces.push_back(Piece::Frames(source));
            }
            // Questions were put before; were one left, the body would not be JSON, and clients would see it.
            Answer::AskNode(_) => {}
        }
    }

    fn body(&mut self, body: Bytes) {
        if body.len() <= COPIED_MAX {
            self.text.extend_from_slice(&body);
        } else {
            self.cut();
            self.pieces.push_back(Piece::Text(body));
        }
    }

    /// Makes a piece of the text so far.
    fn cut(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.pieces.push_back(Piece::Text(text.into()));
        }
    }

    /// The body as a whole, else its first frame and what gives the others.
    pub(super) fn end(mut self) -> Made {
        self.cut();
        match self.pieces.make_contiguous() {
            [Piece::Text(_)] => {
                if let Some(Piece::Text(only)) = self.pieces.pop_front() {
                    return Made::Whole(only);
                }
            }
            // Nothing stands behind it: several threads may make it.
            [Piece::Text(_), Piece::Frames(_)] => {
                let first = self.texts();
                if let Some(Piece::Frames(source)) = self.pieces.pop_front() {
                    return Made::Begun(first, source, None);
                }
            }
            _ => {}
        }
        let is_text = self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)));
        // A longer one would be there twice while it is copied.
        if is_text && self.bytes() <= FRAME_BYTES {
            let mut whole = Vec::new();
            for piece in self.pieces {
                if let Piece::Text(text) = piece {
                    whole.extend_from_slice(&text);
                }
            }
            return Made::Whole(whole.into());
        }
        let first = self.texts();
        Made::Begun(first, Box::new(self), None)
    }

    /// The texts that come next, about a frame of them.
    fn texts(&mut self) -> Bytes {
        let mut frame = Vec::new();
        while let Some(Piece::Text(text)) = self.pieces.pop_front_if(|piece| matches!(piece, Piece::Text(_)))
        {
            if frame.is_empty() && text.len() >= FRAME_BYTES {
                return self.counted(text);
            }
            frame.extend_from_slice(&text);
            if frame.len() >= FRAME_BYTES {
                break;
            }
        }
        self.counted(frame.into())
    }

    /// A frame that counts by itself, no more with the pieces that are left.
    fn counted(&mut self, frame: Bytes) -> Bytes {
        let left = self.bytes();
        let Some(holding) = &mut self.holding else {
            return frame;
        };
        holding.change(left);
        holding.count_apart(frame)
    }

    /// Bytes of the texts.
    fn bytes(&self) -> usize {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Frames(_) => 0,
        });
        texts.sum()
    }
}

impl FrameSource for Pieces {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(piece) = self.pieces.front_mut() {
            match piece {
                Piece::Text(_) => return Ok(Some(self.texts())),
                Piece::Frames(source) => match source.next_frame()? {
                    Some(frame) => return Ok(Some(frame)),
                    None => drop(self.pieces.pop_front()),
                },
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::answer::Extra;

    struct Count(u8);

    impl FrameSource for Count {
        fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
            self.0 += 1;
            match self.0 {
                1 | 2 => Ok(Some(Bytes::from(format!(",{}", self.0)))),
                3 => Ok(Some(Bytes::from_static(b"]"))),
                _ => Ok(None),
            }
        }
    }

    fn read(pieces: Pieces) -> serde_json::Value {
        let body = match pieces.end() {
            Made::Whole(whole) => whole.to_vec(),
            Made::Begun(first, mut rest, _) => {
                let mut body = first.to_vec();
                while let Some(frame) = rest.next_frame().unwrap() {
                    assert!(!frame.is_empty());
                    body.extend_from_slice(&frame);
                }
                body
            }
        };
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn responses_stand_in_order_with_their_ids() {
        let id = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let whole = |text: &str| Answer::Whole(Bytes::from(text.to_owned()), Extra::default());
        let long = format!("\"{}\"", "a".repeat(5000));
        let mut pieces = Pieces::default();
        pieces.mark(b'[');
        pieces.response(&id("1"), Ok(whole("\"0x1\"")));
        pieces.mark(b',');
        pieces.response(&id("\"two\""), Ok(whole(&long)));
        pieces.mark(b']');
        let both = read(pieces);
        assert_eq!(
            both[0],
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": "0x1"})
        );
        assert_eq!(both[1]["result"].as_str().unwrap().len(), 5000);

        let mut pieces = Pieces::default();
        pieces.mark(b'[');
        let begun = Answer::Begun(Bytes::from_static(b"[0"), Box::new(Count(0)), Extra::default());
        pieces.response(&id("null"), Ok(begun));
        pieces.mark(b',');
        pieces.response(&id("2.5"), Err(Fault::limit("x")));
        pieces.mark(b']');
        let both = read(pieces);
        assert_eq!(
            both[0],
            serde_json::json!({"jsonrpc": "2.0", "id": null, "result": [0, 1, 2]})
        );
        assert_eq!(both[1]["error"]["code"], -32005);
        assert_eq!(both[1]["id"], 2.5);
    }
}
