//! The instruction sets, and the one in use.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// The environment variable that names the instruction set.
pub const VARIABLE: &str = "BLOCKTRI_ISA";

/// An instruction set, the least first.
///
/// ```
/// use bt_simd::Isa;
/// assert!(Isa::Portable < Isa::Avx2 && Isa::Portable.is_available());
/// assert_eq!("avx2".parse(), Ok(Isa::Avx2));
/// assert_eq!(Isa::Avx512.to_string(), "avx512");
/// assert!("sse9".parse::<Isa>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Isa {
    /// What every processor of the target has.
    Portable = 1,
    /// Vectors of 128 bits with fused multiply-adds; only where the feature `base128` has compiled them.
    Base128 = 2,
    /// Vectors of 256 bits with fused multiply-adds.
    Avx2 = 3,
    /// Vectors of 512 bits.
    Avx512 = 4,
}

/// The one in use, zero before it is asked for.
static IN_USE: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Base128, Self::Avx2, Self::Avx512];

    /// The name, as the environment variable has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Base128 => "base128",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this processor has it, and loops are compiled for it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Base128 => cfg!(feature = "base128") && pulp::x86::V3::is_available(),
            Self::Avx2 => pulp::x86::V3::is_available(),
            Self::Avx512 => pulp::x86::V4::is_available(),
        }
    }

    /// Whether this processor has it, and loops are compiled for it.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Self::Portable
    }

    /// The one that loops run on: the best available, or the one that `BLOCKTRI_ISA` names where it is available.
    #[inline]
    pub fn in_use() -> Self {
        Self::of(IN_USE.load(Ordering::Relaxed)).unwrap_or_else(Self::choose)
    }

    /// What `BLOCKTRI_ISA` asks for, if anything.
    ///
    /// # Errors
    /// [`UnknownIsa`] when it is no name of an instruction set, or names one that is not available.
    pub fn requested() -> Result<Option<Self>, UnknownIsa> {
        let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else { return Ok(None) };
        let name = name.to_string_lossy();
        let isa: Self = name.parse()?;
        if isa.is_available() { Ok(Some(isa)) } else { Err(UnknownIsa { name: name.into_owned() }) }
    }

    /// Lets this process run on it from now on, as `BLOCKTRI_ISA` would have. Factors made before stay as they are.
    ///
    /// # Errors
    /// [`UnknownIsa`] when it is not available.
    pub fn set(self) -> Result<(), UnknownIsa> {
        if !self.is_available() {
            return Err(UnknownIsa { name: self.name().into() });
        }
        IN_USE.store(self as u8, Ordering::Relaxed);
        Ok(())
    }

    fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|isa| *isa as u8 == code)
    }

    #[cold]
    fn choose() -> Self {
        let best = || [Self::Avx512, Self::Avx2].into_iter().find(|isa| isa.is_available()).unwrap_or(Self::Portable);
        let isa = Self::requested().ok().flatten().unwrap_or_else(best);
        IN_USE.store(isa as u8, Ordering::Relaxed);
        isa
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;
    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        let isa = Self::ALL.into_iter().find(|isa| isa.name() == name);
        isa.ok_or_else(|| UnknownIsa { name: name.to_owned() })
    }
}

/// An instruction set that is not known, or not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownIsa {
    name: String,
}

impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let available: Vec<_> = Isa::ALL.into_iter().filter(|isa| isa.is_available()).map(Isa::name).collect();
        write!(f, "the instruction set {:?} is not one that can be run here: {}", self.name, available.join(", "))
    }
}

impl std::error::Error for UnknownIsa {}

/// Runs `work` on every available instruction set, for tests that compare them: whatever runs in this process meanwhile runs on the same
/// one, and one caller at a time.
///
/// ```
/// # use bt_simd::{Isa, for_each_isa};
/// let mut all = Vec::new();
/// for_each_isa(|isa| all.push((isa, Isa::in_use())));
/// assert!(all.iter().all(|(isa, in_use)| isa == in_use));
/// ```
pub fn for_each_isa(mut work: impl FnMut(Isa)) {
    /// What was in use is again, even when `work` panics.
    struct Restore(u8);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_USE.store(self.0, Ordering::Relaxed);
        }
    }
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let _restore = Restore(IN_USE.load(Ordering::Relaxed));
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        IN_USE.store(isa as u8, Ordering::Relaxed);
        work(isa);
    }
}
