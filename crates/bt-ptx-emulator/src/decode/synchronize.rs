//! Barriers, warp-level operations and fences (PTX ISA 6.3, section 9.7.12).

use super::function::{Decoded, FunctionDecoder};
use super::instruction::exactly;
use crate::op::{Barrier, NONE, Op, Reduce, Slot, WarpKind, WarpOp};
use crate::ptx::Operand;

impl FunctionDecoder<'_, '_> {
    pub(super) fn synchronize(&mut self, opcode: &[&str], operands: &[Operand]) -> Decoded<()> {
        match *opcode {
            ["bar" | "barrier", "sync"] | ["barrier", "sync", "aligned"] => {
                let id = exactly::<1>(operands).map_err(|_| "barriers of a part of the block are not supported")?[0];
                let id = self.source(id, "u32")?;
                self.barrier(Barrier { reduce: Reduce::Nothing, id, d: NONE, p: NONE });
            }
            ["bar", "red", kind, ty] => {
                let reduce = match (kind, ty) {
                    ("popc", "u32") => Reduce::Count,
                    ("and", "pred") => Reduce::And,
                    ("or", "pred") => Reduce::Or,
                    _ => return Err(format!("'{}' is not supported", opcode.join("."))),
                };
                let [d, id, p] = exactly(operands)?;
                let (d, id, p) = (self.destination(d)?.slot, self.source(id, "u32")?, self.condition(p)?);
                self.barrier(Barrier { reduce, id, d, p });
            }
            ["bar", "warp", "sync"] => {
                let [mask] = exactly(operands)?;
                let mask = self.source(mask, "b32")?;
                self.linker.has_warp_barriers = true;
                self.warp(WarpKind::Barrier, [NONE, NONE], [NONE; 3], mask);
            }
            ["shfl", "sync", kind, "b32"] => {
                let kind = match kind {
                    "up" => WarpKind::ShuffleUp,
                    "down" => WarpKind::ShuffleDown,
                    "bfly" => WarpKind::ShuffleButterfly,
                    "idx" => WarpKind::ShuffleIndex,
                    _ => return Err(format!("shuffle '{kind}' is not known")),
                };
                let [d, a, b, c, mask] = exactly(operands)?;
                let sources = [self.source(a, "b32")?, self.source(b, "b32")?, self.source(c, "b32")?];
                let (d, mask) = (self.pair(d)?, self.source(mask, "b32")?);
                self.warp(kind, d, sources, mask);
            }
            ["vote", "sync", kind, _] => {
                let kind = match (kind, opcode[3]) {
                    ("all", "pred") => WarpKind::VoteAll,
                    ("any", "pred") => WarpKind::VoteAny,
                    ("uni", "pred") => WarpKind::VoteUniform,
                    ("ballot", "b32") => WarpKind::Ballot,
                    _ => return Err(format!("'{}' is not supported", opcode.join("."))),
                };
                let [d, p, mask] = exactly(operands)?;
                let (d, p, mask) = (self.destination(d)?.slot, self.condition(p)?, self.source(mask, "b32")?);
                self.warp(kind, [d, NONE], [p, NONE, NONE], mask);
            }
            ["match", kind @ ("any" | "all"), "sync", ty @ ("b32" | "b64")] => {
                let [d, a, mask] = exactly(operands)?;
                let (d, a, mask) = (self.pair(d)?, self.source(a, ty)?, self.source(mask, "b32")?);
                self.warp(
                    if kind == "any" { WarpKind::MatchAny } else { WarpKind::MatchAll },
                    d,
                    [a, NONE, NONE],
                    mask,
                );
            }
            ["activemask", "b32"] => {
                let [d] = exactly(operands)?;
                let d = self.destination(d)?.slot;
                self.emit(Op::ActiveMask(d));
            }
            ["membar", "gl" | "sys"] | ["fence", "acq_rel" | "sc", "gpu" | "sys"] => self.emit(Op::Fence),
            // Within a block all accesses are in one order anyway.
            ["membar", "cta"] | ["fence", "acq_rel" | "sc", "cta"] => {}
            ["nanosleep", "u32"] => {
                exactly::<1>(operands)?;
                self.emit(Op::Yield);
            }
            _ => return Err(format!("the instruction '{}' is not supported", opcode.join("."))),
        }
        Ok(())
    }

    fn barrier(&mut self, barrier: Barrier) {
        self.code.barriers.push(barrier);
        self.emit(Op::Barrier(self.code.barriers.len() as u32 - 1));
    }

    fn warp(&mut self, kind: WarpKind, [d, p]: [Slot; 2], [a, b, c]: [Slot; 3], mask: Slot) {
        self.code.warp_ops.push(WarpOp { kind, d, p, a, b, c, mask });
        self.emit(Op::Warp(self.code.warp_ops.len() as u32 - 1));
    }

    /// `d` or `d|p`.
    fn pair(&mut self, operand: &Operand) -> Decoded<[Slot; 2]> {
        match operand {
            Operand::Pair(d, p) => Ok([self.register(d)?.slot, self.predicate(p)?]),
            single => Ok([self.destination(single)?.slot, NONE]),
        }
    }
}
