// SPDX-License-Identifier: Apache-2.0

package sparsek

import "runtime"

// Operands are what a product C = act(alpha A B + beta C + bias) with a plan is given. N is the number of its columns, at
// least 1 and at most those that the plan was made for. B and C may have any strides, which on a GPU need to be multiples
// of 16 bytes where those of the plan are.
type Operands struct {
	B    Operand // K x N, of the matrix's type
	C    Operand // M x N, of the type that the plan gives; it must not overlap what is read
	Bias Operand // nil, or of a plan with one: M x 1 for RowBias, 1 x N for ColumnBias, of C's type, without gaps

	// Values, if there are any, take the place of the matrix's: the blocks one below the other, (blocks BlockM) x BlockK,
	// of the matrix's type and without gaps. The matrix's stay as they are, so products with values of their own may run
	// at once.
	Values Operand
	// Input, if there is one, takes the place of C in beta C: M x N, of C's type, or 1 x N for all rows of C. It may be C,
	// and must not overlap it else. Without a beta it is not read. Baselines and kernels of other libraries refuse 1 x N.
	Input Operand
	// AlphaScale and BetaScale, if there are any, are 1 x 1, of float32, finite, and read when the product runs: alpha and
	// beta are multiplied with them. Kernels of other libraries refuse them.
	AlphaScale, BetaScale Operand

	// Batch above 1 is a number of products, which run one after the other. Their operands lie one below the other: C is
	// Batch M x N, and so is an Input of more than one row, with C's stride. B is Batch K x N, the bias Batch M x 1 or
	// Batch x N, and Values Batch times as high, or each as for one product, which all of them then share.
	Batch int
	// Workspace, if there is one, is device memory for this product alone until it has ended: a matrix without gaps of at
	// least PlanInfo.ProductBytes, aligned to 256 bytes, whose values mean nothing. Else the library has its own. The CPU
	// uses none.
	Workspace Operand
}

// boundOperands are those of one product.
type boundOperands struct {
	b, c, bias, values, input, alphaScale, betaScale, workspace operand

	batch int // at least 1
}

func (o *boundOperands) all() [8]*operand {
	return [...]*operand{&o.b, &o.c, &o.bias, &o.values, &o.input, &o.alphaScale, &o.betaScale, &o.workspace}
}

// operandNames are those of boundOperands.all.
var operandNames = [...]string{"B", "C", "the bias", "Values", "Input", "AlphaScale", "BetaScale", "Workspace"}

// check makes sure that the operands are what was planned for, and takes their buffers into use.
func (r *run) check(o Operands) error {
	if err := r.match(o); err != nil {
		return err
	}
	for _, x := range r.all() {
		if x.buffer == nil {
			continue
		}
		if x.engine != r.plan.matrix.engine {
			return fault(r.op, ErrBadArgument, "a buffer is of another engine than the plan")
		}
		if err := r.use.add(x.buffer); err != nil {
			return err
		}
	}
	runtime.KeepAlive(o) // until the buffers are in use
	return r.apart()
}

// match makes sure that the operands have sizes and types that the plan serves.
func (r *run) match(o Operands) error {
	p := r.plan
	if o.Batch < 0 {
		return fault(r.op, ErrBadSize, "Batch is %d: set it to the number of products, or to 0 for one", o.Batch)
	}
	r.batch = max(o.Batch, 1)
	if err := r.b.of(r.op, "B", o.B); err != nil {
		return err
	}
	if err := r.c.of(r.op, "C", o.C); err != nil {
		return err
	}
	if r.b.dtype != p.matrix.dtype {
		return fault(r.op, ErrBadArgument, "B is of %v and the matrix of %v", r.b.dtype, p.matrix.dtype)
	}
	if r.b.cols < 1 || r.b.cols > p.n {
		return fault(r.op, ErrBadSize, "B is %d x %d where %d rows are needed and the plan is for 1 to %d columns", r.b.rows, r.b.cols, p.matrix.cols, p.n)
	}
	if err := r.b.check(r.op, "B", r.rowsOf(&r.b, p.matrix.cols), r.b.cols, -1); err != nil {
		return err
	}
	if err := r.c.check(r.op, "C", r.batch*p.matrix.rows, r.b.cols, -1); err != nil {
		return err
	}
	if err := r.checkOutput("C", r.c.dtype); err != nil {
		return err
	}
	if err := r.matchBias(o.Bias); err != nil {
		return err
	}
	return r.matchOthers(o)
}

// rowsOf are the rows that an operand of the batch is to have: those of one product, if it has as many, or of each.
func (r *run) rowsOf(x *operand, one int) int {
	if x.rows == one {
		return one
	}
	return r.batch * one
}

// step is how many elements lie between what two products of the batch have of an operand; 0 where they share it.
func (r *run) step(x *operand, one int) int {
	if !x.given || x.rows == one {
		return 0
	}
	return one * x.stride
}

// matchPlanned is match for products that have the sizes and strides of the plan, and nothing of their own.
func (r *run) matchPlanned(o Operands) error {
	if err := r.match(o); err != nil {
		return err
	}
	p := r.plan
	if r.b.cols != p.n {
		return fault(r.op, ErrBadSize, "B has %d columns where the plan is for %d", r.b.cols, p.n)
	}
	if r.b.stride != p.ldb || r.c.stride != p.ldc {
		return fault(r.op, ErrBadLeadingDimension, "the strides of B and C are %d and %d where the plan is for %d and %d", r.b.stride, r.c.stride, p.ldb, p.ldc)
	}
	for i, x := range r.all() {
		if i > 2 && x.given {
			return fault(r.op, ErrBadArgument, "%s is for Multiply and Enqueue alone", operandNames[i])
		}
	}
	if r.batch > 1 {
		return fault(r.op, ErrBadArgument, "Batch is for Multiply and Enqueue alone")
	}
	return nil
}

// matchBias makes sure that the bias is what was planned for.
func (r *run) matchBias(bias Operand) error {
	p := r.plan
	if p.bias == NoBias {
		if bias != nil {
			return fault(r.op, ErrBadArgument, "a bias is given to a plan without one: set PlanOptions.Bias")
		}
		return nil
	}
	if missing(bias) {
		return fault(r.op, ErrNullPointer, "the plan is for a %v bias: set Operands.Bias", p.bias)
	}
	r.bias = bias.operand()
	if err := r.bias.checkBias(r.op, p.bias, r.rowsOf(&r.bias, p.matrix.rows), r.b.cols, r.rowsOf(&r.bias, 1)); err != nil {
		return err
	}
	return r.checkOutput("the bias", r.bias.dtype)
}

// matchOthers makes sure of what a product need not be given.
func (r *run) matchOthers(o Operands) error {
	m := r.plan.matrix
	if !missing(o.Values) {
		r.values = o.Values.operand()
		if r.values.dtype != m.dtype {
			return fault(r.op, ErrBadArgument, "Values is of %v and the matrix of %v", r.values.dtype, m.dtype)
		}
		if err := r.values.check(r.op, "Values", r.rowsOf(&r.values, m.blocks*m.blockM), m.blockK, m.blockK); err != nil {
			return err
		}
	}
	if !missing(o.Input) && m.rows > 0 {
		r.input = o.Input.operand()
		rows, stride := r.batch*m.rows, -1
		if r.input.rows == 1 {
			rows = 1
		} else if r.batch > 1 {
			stride = r.c.stride
		}
		if err := r.input.check(r.op, "Input", rows, r.b.cols, stride); err != nil {
			return err
		}
		if err := r.checkOutput("Input", r.input.dtype); err != nil {
			return err
		}
	}
	if err := r.matchScale("AlphaScale", &r.alphaScale, o.AlphaScale); err != nil {
		return err
	}
	if err := r.matchScale("BetaScale", &r.betaScale, o.BetaScale); err != nil {
		return err
	}
	return r.matchWorkspace(o.Workspace)
}

func (r *run) matchWorkspace(o Operand) error {
	if missing(o) {
		return nil
	}
	if r.plan.data != nil {
		return fault(r.op, ErrBadArgument, "Workspace is given to a plan that has one of its own")
	}
	r.workspace = o.operand()
	if r.workspace.host != nil && r.plan.matrix.engine.info.Backend == CUDA {
		return fault(r.op, ErrWrongMemory, "Workspace is in host memory: use a DeviceDense")
	}
	return r.workspace.check(r.op, "Workspace", r.workspace.rows, r.workspace.cols, r.workspace.cols)
}

func (r *run) matchScale(name string, x *operand, o Operand) error {
	if missing(o) {
		return nil
	}
	*x = o.operand()
	if x.dtype != FP32 {
		return fault(r.op, ErrBadArgument, "%s is of %v and must be of %v", name, x.dtype, FP32)
	}
	return x.check(r.op, name, 1, 1, -1)
}

// apart makes sure that C overlaps nothing that is read. The buffers must be in use.
func (r *run) apart() error {
	for i, x := range r.all() {
		if x == &r.c || !x.given || !r.c.overlaps(x) {
			continue
		}
		if x == &r.input && x.address() == r.c.address() && x.rows == r.c.rows && (x.stride == r.c.stride || x.rows < 2) {
			continue
		}
		return fault(r.op, ErrBadArgument, "C overlaps %s: the product needs memory of its own", operandNames[i])
	}
	return nil
}

// checkOutput makes sure that C or the bias is of the type that was planned for.
func (r *run) checkOutput(name string, dtype DType) error {
	if dtype != r.plan.output {
		return fault(r.op, ErrBadArgument, "%s is of %v where the plan gives %v: set PlanOptions.Output", name, dtype, r.plan.output)
	}
	return nil
}

// bind is check for operands that must be where the back-end reads them.
func (r *run) bind(o Operands) error {
	if err := r.check(o); err != nil {
		return err
	}
	return r.inPlace()
}

// inPlace makes sure that the operands are where the back-end reads them.
func (r *run) inPlace() error {
	if r.plan.matrix.engine.info.Backend == CPU {
		return nil
	}
	for i, x := range r.all() {
		if x.host != nil {
			return fault(r.op, ErrWrongMemory, "%s is in host memory, which only Multiply copies: use a DeviceDense", operandNames[i])
		}
	}
	return nil
}
