//! Two pieces of work on two threads.

/// Both on the current rayon pool, compiled once for all that is run so: [`rayon::join`] is compiled again for every pair of closures.
///
/// ```
/// let (sum, largest) = bt_formats::join(|| [1, 2, 3].iter().sum::<i32>(), || 3.max(2));
/// assert_eq!((sum, largest), (6, 3));
/// ```
pub fn join<A: Send, B: Send>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B + Send) -> (A, B) {
    let (mut first, mut second) = (Some(first), Some(second));
    let (mut a, mut b) = (None, None);
    both(&mut || a = first.take().map(|f| f()), &mut || b = second.take().map(|f| f()));
    a.zip(b).expect("both have been run")
}

#[inline(never)]
fn both(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    rayon::join(first, second);
}
