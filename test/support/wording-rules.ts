// Finds decisions by wording: code that compares a text for humans, or looks into it.
//
// A text for humans is a value named `description`, a result of `refusalText`, or a variable that holds one of these.
// Code may pass it on, print it, and check whether it is empty. Any other question about it is a decision that changes
// when an author improves a sentence.

import ts from 'typescript'

const comparisons = new Set([
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
  ts.SyntaxKind.EqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsToken,
])

/** Functions that look for a text, or into their argument. */
const lookups = new Set(['exec', 'test', 'includes', 'has', 'get', 'indexOf', 'startsWith', 'endsWith'])

/** One line for each decision by wording; files by their path. */
export const wordingViolations = (files: ReadonlyMap<string, string>): readonly string[] =>
  [...files].flatMap(([path, text]) => violationsIn(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)))

function violationsIn(file: ts.SourceFile): readonly string[] {
  const found: string[] = []
  const names = new Set(['description'])
  const isText = (given: ts.Node): boolean => {
    const node = bare(given)
    if (ts.isIdentifier(node)) return names.has(node.text)
    if (ts.isPropertyAccessExpression(node)) return node.name.text === 'description'
    return ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === 'refusalText'
  }
  const report = (node: ts.Node, what: string): void => {
    const line = file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
    const code = node.getText(file).replace(/\s+/g, ' ').slice(0, 80)
    found.push(
      `${file.fileName}:${line} ${what} a text for humans: ${code}. Decide by the code and the facts of the refusal.`,
    )
  }
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer && isText(node.initializer))
      names.add(node.name.text)
    if (ts.isBindingElement(node) && node.propertyName?.getText(file) === 'description')
      names.add(node.name.getText(file))
    if (ts.isBinaryExpression(node) && comparisons.has(node.operatorToken.kind)) {
      const { left, right } = node
      if ((isText(left) && !isEmpty(right)) || (isText(right) && !isEmpty(left))) report(node, 'compares')
    }
    if (ts.isSwitchStatement(node) && isText(node.expression)) report(node.expression, 'switches over')
    if (ts.isElementAccessExpression(node) && (isText(node.expression) || isText(node.argumentExpression)))
      report(node, 'looks into')
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { expression: receiver, name } = node.expression
      if (isText(receiver) || (lookups.has(name.text) && node.arguments.some(isText))) report(node, 'looks into')
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

/** Without parentheses, `!` and `as`. */
function bare(node: ts.Node): ts.Node {
  const isWrapped = ts.isParenthesizedExpression(node) || ts.isNonNullExpression(node) || ts.isAsExpression(node)
  return isWrapped ? bare(node.expression) : node
}

/** `''`, or `undefined`. */
const isEmpty = (node: ts.Node): boolean =>
  (ts.isStringLiteral(node) && node.text === '') || (ts.isIdentifier(node) && node.text === 'undefined')
