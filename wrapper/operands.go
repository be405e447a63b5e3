// SPDX-License-Identifier: Apache-2.0

package sparsek

import "runtime"

// Operands are what a product with a plan is given. The sizes here are those of DSD, C = act(alpha A B + beta C + bias);
// [Op] has those of the other products. N is at least 1 and at most what the plan was made for. B and C may have any
// strides, which on a GPU need to be multiples of 16 bytes where those of the plan are, and have the orders of the plan
// ([Transpose]).
type Operands struct {
	B    Operand // K x N, of the type that the plan takes
	C    Operand // M x N, of the type that the plan gives; it must not overlap what is read. Of SDD without gaps
	Bias Operand // nil, or of a plan with one: (rows of C) x 1 for RowBias, 1 x (its columns) for ColumnBias, of C's type, without gaps
	X    Operand // of SDD: M x N, of the matrix's type; else nil

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
	// Batch M x N, and so is an Input of more than one row, with C's stride. B is Batch K x N, X Batch M x N, the bias
	// Batch M x 1 or Batch x N, and Values Batch times as high, or each as for one product, which all of them then share.
	Batch int
	// Workspace, if there is one, is device memory for this product alone until it has ended: a matrix without gaps of at
	// least PlanInfo.ProductBytes, aligned to 256 bytes, whose values mean nothing. Else the library has its own. The CPU
	// uses none.
	Workspace Operand
}

// boundOperands are those of one product.
type boundOperands struct {
	b, c, bias, x, values, input, alphaScale, betaScale, workspace operand

	batch int // at least 1
	n     int // of the product

	wantX, wantB, wantC extent // of one product
}

func (o *boundOperands) all() [9]*operand {
	return [...]*operand{&o.b, &o.c, &o.bias, &o.x, &o.values, &o.input, &o.alphaScale, &o.betaScale, &o.workspace}
}

// operandNames are those of boundOperands.all.
var operandNames = [...]string{"B", "C", "the bias", "X", "Values", "Input", "AlphaScale", "BetaScale", "Workspace"}

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
	if r.b.dtype != p.dtypeB {
		return fault(r.op, ErrBadArgument, "B is of %v where the plan takes %v: set PlanOptions.DTypeB", r.b.dtype, p.dtypeB)
	}
	if err := r.matchX(o.X); err != nil {
		return err
	}
	if err := r.findN(); err != nil {
		return err
	}
	r.wantX, r.wantB, r.wantC = p.matrix.extents(p.op, r.n)
	if r.x.given {
		if err := r.x.check(r.op, "X", r.rowsOf(&r.x, r.wantX.rows), r.wantX.cols, -1); err != nil {
			return err
		}
	}
	if err := r.b.check(r.op, "B", r.rowsOf(&r.b, r.wantB.rows), r.wantB.cols, -1); err != nil {
		return err
	}
	if err := r.c.check(r.op, "C", r.batch*r.wantC.rows, r.wantC.cols, p.strideOfC()); err != nil {
		return err
	}
	if err := r.checkOrders(); err != nil {
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

// matchX makes sure that there is an X where the product has one, and of its type.
func (r *run) matchX(o Operand) error {
	p := r.plan
	if p.op != SDD {
		if !missing(o) {
			return fault(r.op, ErrBadArgument, "X is given to a product of %v: it is for %v", p.op, SDD)
		}
		return nil
	}
	if err := r.x.of(r.op, "X", o); err != nil {
		return err
	}
	if r.x.dtype != p.matrix.dtype {
		return fault(r.op, ErrBadArgument, "X is of %v and the matrix of %v", r.x.dtype, p.matrix.dtype)
	}
	return nil
}

// findN finds the n of the product, from the operand that has no more rows for a batch, or else from C.
func (r *run) findN() error {
	p := r.plan
	switch p.op {
	case SDD:
		r.n = r.x.cols
		if r.n < 1 || r.n > p.n {
			return fault(r.op, ErrBadSize, "X is %d x %d where %d rows are needed and the plan is for 1 to %d columns", r.x.rows, r.x.cols, p.matrix.rows, p.n)
		}
	case DDS, DDST:
		r.n = r.c.rows / r.batch
		if r.n < 1 || r.n > p.n {
			return fault(r.op, ErrBadSize, "C is %d x %d where %d columns are needed and the plan is for 1 to %d rows", r.c.rows, r.c.cols, p.matrix.cols, p.n)
		}
	default:
		r.n = r.b.cols
		if r.n < 1 || r.n > p.n {
			_, b, _ := p.matrix.extents(p.op, p.n)
			return fault(r.op, ErrBadSize, "B is %d x %d where %d rows are needed and the plan is for 1 to %d columns", r.b.rows, r.b.cols, b.rows, p.n)
		}
	}
	return nil
}

// checkOrders makes sure that the operands have the planned orders.
func (r *run) checkOrders() error {
	p := r.plan
	for _, x := range [...]struct {
		name  string
		of    *operand
		order Order
	}{{"B", &r.b, p.orderB}, {"C", &r.c, p.orderC}, {"X", &r.x, p.orderX}} {
		if x.of.given && x.of.order != x.order {
			return fault(r.op, ErrBadArgument, "%s is %v where the plan is for a %v one: set PlanOptions.Order%s, or see Transpose", x.name, x.of.order, x.order, x.name)
		}
	}
	return nil
}

// strideOfC is the stride that C must have; -1: any.
func (p *Plan) strideOfC() int {
	if p.op == SDD {
		return p.matrix.blockK
	}
	return -1
}

// strideC is what the library is given for a stride of C: blocks have none.
func (p *Plan) strideC(stride int) int {
	if p.op == SDD {
		return 0
	}
	return stride
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
	if x.order == ColumnMajor {
		return one
	}
	return one * x.stride
}

// matchPlanned is match for products that have the sizes and strides of the plan, and nothing of their own.
func (r *run) matchPlanned(o Operands) error {
	if err := r.match(o); err != nil {
		return err
	}
	p := r.plan
	if r.n != p.n {
		return fault(r.op, ErrBadSize, "the operands are for N = %d where the plan is for %d", r.n, p.n)
	}
	if r.b.stride != p.ldb || r.c.stride != p.ldc {
		return fault(r.op, ErrBadLeadingDimension, "the strides of B and C are %d and %d where the plan is for %d and %d", r.b.stride, r.c.stride, p.ldb, p.ldc)
	}
	if r.x.given && r.x.stride != p.ldx {
		return fault(r.op, ErrBadLeadingDimension, "the stride of X is %d where the plan is for %d", r.x.stride, p.ldx)
	}
	for i, x := range r.all() {
		if i > 3 && x.given {
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
	if err := r.bias.checkBias(r.op, p.bias, r.rowsOf(&r.bias, r.wantC.rows), r.wantC.cols, r.rowsOf(&r.bias, 1)); err != nil {
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
		if r.values.order != RowMajor {
			return fault(r.op, ErrBadArgument, "Values is %v: each block's rows must follow each other", r.values.order)
		}
		if err := r.values.check(r.op, "Values", r.rowsOf(&r.values, m.blocks*m.blockM), m.blockK, m.blockK); err != nil {
			return err
		}
	}
	if !missing(o.Input) && r.wantC.rows > 0 {
		r.input = o.Input.operand()
		rows, stride := r.batch*r.wantC.rows, r.plan.strideOfC()
		if r.inputIsOneRow() {
			rows = 1
			if r.input.order == ColumnMajor && r.input.cols > 1 && r.input.stride != 1 {
				return fault(r.op, ErrBadLeadingDimension, "Input's stride is %d: the elements of one row for all must follow each other", r.input.stride)
			}
		} else {
			if r.batch > 1 {
				stride = r.c.stride
			}
			if r.input.order != r.plan.orderC {
				return fault(r.op, ErrBadArgument, "Input is %v where the plan is for a %v C", r.input.order, r.plan.orderC)
			}
		}
		if err := r.input.check(r.op, "Input", rows, r.wantC.cols, stride); err != nil {
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

// inputIsOneRow returns whether Input is one row for all rows of C. The blocks of SDD are no rows.
func (r *run) inputIsOneRow() bool { return r.input.rows == 1 && r.plan.op != SDD }

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
