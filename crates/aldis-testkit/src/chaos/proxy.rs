//! A proxy in front of the database that delays what passes, and cuts all connections on command.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::corpus::rng::Rng;

/// One in so many pieces is delayed, and by how many milliseconds at most.
const DELAYED_PERCENT: usize = 2;
const DELAY_MAX: usize = 300;
const PIECE: usize = 16 << 10;

/// A proxy on a port of its own.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Passes connections on to this port.
    pub(super) fn start(target: u16, seed: u64) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let known = Arc::clone(&open);
        let _thread = thread::spawn(move || {
            let mut number = seed;
            for client in listener.incoming().flatten() {
                number += 1;
                // The database may be gone: then the client is cut off.
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.extend([client.try_clone(), server.try_clone()].into_iter().flatten());
                for (from, to, seed) in [
                    (client.try_clone(), server.try_clone(), number),
                    (server.try_clone(), client.try_clone(), !number),
                ] {
                    let (Ok(from), Ok(to)) = (from, to) else { continue };
                    let _thread = thread::spawn(move || pass(from, to, Rng::new(seed)));
                }
            }
        });
        Ok(Self { port, open })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts every connection.
    pub(super) fn cut(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            let _cut = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes on what comes until one side is gone.
fn pass(mut from: TcpStream, mut to: TcpStream, mut rng: Rng) {
    let mut piece = [0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if rng.chance(DELAYED_PERCENT) {
            let delay = u64::try_from(rng.below(DELAY_MAX)).unwrap_or_default();
            thread::sleep(Duration::from_millis(delay));
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _cut = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
